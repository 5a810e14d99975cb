package cluster

import (
	"log/slog"
	"strings"
	"testing"
)

func TestServerLinesAreLogged(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	o := newOutput(slog.New(slog.NewTextHandler(&got, &slog.HandlerOptions{Level: slog.LevelWarn})))
	for _, part := range []string{
		"00000 LOG:  quiet\n57P03 FATAL:  starting up\n0100", "0 WARNING:  odd\n",
		"XX000 PANIC:  bad\n", "\n", "F0001 FATAL:  in use\n",
	} {
		if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, want := range []string{
		"level=WARN msg=\"postgres: odd\"", "level=ERROR msg=\"postgres: bad\"",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("got %s, want a line with %q", got.String(), want)
		}
	}
	if strings.Contains(got.String(), "quiet") || strings.Contains(got.String(), "starting up") {
		t.Errorf("got %s, want no line below a warning", got.String())
	}
	if !o.foundLock() || !strings.HasSuffix(o.last(), "in use") {
		t.Errorf("last lines: got %q, want the found lock last", o.last())
	}
	if n, err := o.Write([]byte(strings.Repeat("x", 3*maxLine))); err != nil || n != 3*maxLine ||
		len(o.rest) > maxLine {
		t.Errorf("endless line: holds %d bytes, want at most %d", len(o.rest), maxLine)
	}
}
