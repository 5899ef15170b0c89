// What Go's own trace reader hands out, in the text of `sonde trace events --stacks`. Built by `go build -overlay` as one
// more file of internal/trace, so that it sees an event as it was decoded; see run_trace.sh.

package trace

import (
	"bufio"
	"fmt"
	"strings"

	"internal/trace/tracev2"
)

var sondeGoStates = map[GoState]string{GoUndetermined: "undetermined", GoNotExist: "none", GoRunnable: "runnable",
	GoRunning: "running", GoWaiting: "waiting", GoSyscall: "syscall"}

// SondeName is the type of the event as the format calls it.
func (e Event) SondeName() string {
	if e.base.typ == evSync {
		return "Sync"
	}
	return tracev2.Specs()[e.base.typ].Name
}

func sondeID(letter string, id int64) string {
	if id == -1 {
		return letter + "-"
	}
	return fmt.Sprintf("%s%d", letter, id)
}

func (e Event) sondeString(id uint64) string {
	s := e.table.strings.mustGet(stringID(id))
	return "\"" + strings.ReplaceAll(strings.ReplaceAll(s, "\n", "\\n"), "\t", "\\t") + "\""
}

func (e Event) sondeFrames(w *bufio.Writer, head string, id uint64) {
	if id == 0 {
		return
	}
	if head != "" {
		fmt.Fprintf(w, "  %s:\n", head)
	}
	for _, pc := range e.table.stacks.mustGet(stackID(id)).pcs {
		f := e.table.pcs[pc]
		fmt.Fprintf(w, "    %s 0x%x %s:%d\n", e.table.strings.mustGet(f.funcID), f.pc, e.table.strings.mustGet(f.fileID), f.line)
	}
}

// SondeDump writes the event.
func (e Event) SondeDump(w *bufio.Writer) {
	fmt.Fprintf(w, "%d %s %s %s %s", e.base.time, sondeID("m", int64(e.ctx.M)), sondeID("p", int64(e.ctx.P)), sondeID("g", int64(e.ctx.G)), e.SondeName())
	if e.base.typ == evSync {
		fmt.Fprintf(w, " n=%d\n", e.base.args[0])
		return
	}
	spec := tracev2.Specs()[e.base.typ]
	names := spec.Args
	args := e.base.args[:]
	if e.base.typ == tracev2.EvCPUSample {
		names = []string{"dt", "stack"}
	}
	for i, name := range names[min(1, len(names)):] {
		v := args[i]
		switch {
		case strings.HasSuffix(name, "string"):
			fmt.Fprintf(w, " %s=%s", name, e.sondeString(v))
		case name == "gstatus":
			fmt.Fprintf(w, " %s=%d", name, v&0xffffffff)
		default:
			fmt.Fprintf(w, " %s=%d", name, int64(v))
		}
	}
	switch e.base.typ {
	case tracev2.EvSTWEnd:
		fmt.Fprintf(w, " kind_string=%s", e.sondeString(args[0]))
	case tracev2.EvUserTaskEnd:
		fmt.Fprintf(w, " parent_task=%d name_string=\"%s\"", int64(args[2]), e.table.getExtraString(extraStringID(args[3])))
	}
	if e.Kind() == EventStateTransition {
		t := e.StateTransition()
		if t.Resource.Kind == ResourceGoroutine {
			from, to := t.Goroutine()
			fmt.Fprintf(w, " g%d:%s->%s", t.Resource.Goroutine(), sondeGoStates[from], sondeGoStates[to])
		}
	}
	fmt.Fprintln(w)
	switch e.base.typ {
	case tracev2.EvGoCreate, tracev2.EvGoCreateBlocked:
		e.sondeFrames(w, "new_stack", args[1])
	}
	if s := e.Stack(); s != NoStack {
		e.sondeFrames(w, "", uint64(s.id))
	}
}
