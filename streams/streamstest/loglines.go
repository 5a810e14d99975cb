package streamstest

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
)

// LogLines collects the lines of its Logger.
type LogLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Logger returns a logger to the lines, in JSON.
func (l *LogLines) Logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// Write adds a line. It implements io.Writer.
func (l *LogLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all lines.
func (l *LogLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Of returns the lines with a message, in order.
func (l *LogLines) Of(t testing.TB, msg string) (all []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for text := range bytes.Lines(l.text.Bytes()) {
		var line map[string]any
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("log %q: %v", text, err)
		}
		if line["msg"] == msg {
			all = append(all, line)
		}
	}
	return all
}
