/*
 * src/symbol/demangle.h: names of C++ and of Rust (its older scheme, which looks like C++) as people write them, by the
 * demangler of the machine's libstdc++.so.6 where it has one. Without it names stay as they are.
 */
#pragma once
#include "base/mem.h"

struct sonde_demangler;

/* NULL: out of memory. Loads nothing yet. */
struct sonde_demangler *sonde_demangler_new(void);
void sonde_demangler_free(struct sonde_demangler *d);
SONDE_DEFINE_CLEANUP(sonde_demangler)

/*
 * The readable form of name, or NULL: it is no mangled name, or the demangler is not there. name must outlive d; the result
 * is borrowed until free. One thread at a time.
 */
const char *sonde_demangle(struct sonde_demangler *d, const char *name);
