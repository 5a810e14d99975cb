package installation

import (
	"runtime/debug"
	"testing"
)

// What the linker recorded wins over what the Go command recorded.
func TestFill(t *testing.T) {
	t.Parallel()
	recorded := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		},
	}
	for name, c := range map[string]struct{ stamped, want ProgramInfo }{
		"in a checkout": {
			ProgramInfo{}, ProgramInfo{Version: "1.2.3", Commit: "abc", Date: "2026-01-02T03:04:05Z"},
		},
		"stamped": {
			ProgramInfo{Version: "9.0.0", Commit: "def", Date: "2027-01-01T00:00:00Z"},
			ProgramInfo{Version: "9.0.0", Commit: "def", Date: "2027-01-01T00:00:00Z"},
		},
	} {
		got := c.stamped
		if got.fill(recorded); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	var devel ProgramInfo
	devel.fill(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}})
	if devel != (ProgramInfo{}) {
		t.Errorf("a build outside a checkout: got %+v, want nothing", devel)
	}
}
