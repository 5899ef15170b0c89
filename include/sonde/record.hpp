/* sonde/record.hpp: sonde/record.h with scopes: regions, tasks and blocking that end with their block. */
#pragma once
#include <string>
#include "sonde/record.h"

namespace sonde
{

/* A region from here to the end of the scope. site: static. */
class region
{
      public:
#ifdef SONDE_RECORD_DISABLE
	explicit region(sonde_record_site &, uint64_t = 0)
	{
	}
#else
	explicit region(sonde_record_site &site, uint64_t task = 0)
	    : scope_(sonde_record_scope_begin(&site, task))
	{
	}
	~region()
	{
		sonde_record_scope_end(&scope_);
	}
#endif
	region(const region &) = delete;
	region &operator=(const region &) = delete;

#ifndef SONDE_RECORD_DISABLE
      private:
	sonde_record_scope scope_;
#endif
};

/* A task that ends with its owner; movable, so that it may follow the work. */
class task
{
      public:
	task() = default;
#ifdef SONDE_RECORD_DISABLE
	explicit task(sonde_record_site &, uint64_t = 0)
	{
	}
	void end()
	{
	}
#else
	explicit task(sonde_record_site &site, uint64_t parent = 0)
	    : id_(SONDE_RECORD_ENABLED() ? sonde_record_task_begin(&site, parent) : 0)
	{
	}
	~task()
	{
		end();
	}
	void end()
	{
		if (id_ && SONDE_RECORD_ENABLED())
			sonde_record_task_end(id_);
		id_ = 0;
	}
#endif
	task(task &&other) noexcept : id_(other.id_)
	{
		other.id_ = 0;
	}
	task &operator=(task &&other) noexcept
	{
		uint64_t id = other.id_;
		other.id_ = id_;
		id_ = id;
		return *this;
	}
	uint64_t id() const
	{
		return id_;
	}

      private:
	uint64_t id_ = 0;
};

/* The calling thread blocks in this scope. */
class blocking
{
      public:
#ifdef SONDE_RECORD_DISABLE
	explicit blocking(sonde_record_reason = SONDE_RECORD_BLOCKED)
	{
	}
#else
	explicit blocking(sonde_record_reason reason = SONDE_RECORD_BLOCKED)
	{
		sonde_record_block(reason);
	}
	~blocking()
	{
		sonde_record_wake();
	}
#endif
	blocking(const blocking &) = delete;
	blocking &operator=(const blocking &) = delete;
};

inline void log(sonde_record_site &site, const std::string &message, uint64_t task = 0)
{
	(void)site, (void)message, (void)task;
	if (SONDE_RECORD_ENABLED())
		sonde_record_log(&site, task, message.data(), message.size());
}

} // namespace sonde
