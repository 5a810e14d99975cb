package cli

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/streamstest"
)

// The doctor knew no more than "no service runs" of a service that had ended because its port was
// taken, and such a service started broker and database first.
func TestDoctorKnowsWhyTheServiceEnded(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	defer taken.Close()
	for _, flag := range []string{"--admin", "--http", "--mqtt", "--nats"} {
		dir := t.TempDir()
		args := []string{
			"serve", "--data-dir", dir, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0",
			"--mqtt", "127.0.0.1:0", "--nats", "127.0.0.1:0", flag, taken.Addr().String(),
		}
		var out, errs bytes.Buffer
		code := Run(t.Context(), args, Output{Out: &out, Err: &errs})
		if code != exitFailed || !strings.Contains(errs.String(), flag+": ") {
			t.Errorf("%s: exit code %d, printed %q, want 1 and the flag", flag, code, &errs)
		}
		for _, name := range []string{"nats", "postgres"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s: the start has made %s", flag, name)
			}
		}
		started, err := installation.Dir(dir).Started()
		if err != nil || started.EndedAt.IsZero() || !strings.Contains(started.Error, flag) {
			t.Errorf("%s: service.json has %+v, %v, want the error", flag, started, err)
		}
		out.Reset()
		Run(t.Context(), []string{"doctor", "--data-dir", dir}, Output{Out: &out, Err: &errs})
		if !strings.Contains(out.String(), started.Error) {
			t.Errorf("%s: the doctor prints %q, want %q", flag, &out, started.Error)
		}
	}
}
