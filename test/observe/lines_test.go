package observe

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// lineDoc is the description of one kind of line in deploy/docs/logs.md.
type lineDoc struct {
	always, sometimes []string
	example           map[string]any
}

var backticked = regexp.MustCompile("`([a-z_]+)`")

// documented returns the descriptions in deploy/docs/logs.md by message.
func documented(t *testing.T) map[string]*lineDoc {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "docs", "logs.md"))
	streamstest.Must(t, err)
	kinds := map[string]*lineDoc{}
	var kind *lineDoc
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		switch {
		case strings.HasPrefix(line, "## `"):
			kind = &lineDoc{}
			kinds[strings.Trim(line, "# `")] = kind
		case strings.HasPrefix(line, "| `") && len(cells) > 3:
			for _, field := range backticked.FindAllStringSubmatch(cells[1], -1) {
				if strings.TrimSpace(cells[2]) == "yes" {
					kind.always = append(kind.always, field[1])
				} else {
					kind.sometimes = append(kind.sometimes, field[1])
				}
			}
		case strings.HasPrefix(line, "    {"):
			if err := json.Unmarshal([]byte(line), &kind.example); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	return kinds
}

// check compares a line with its description.
func (c *lineDoc) check(t *testing.T, kind string, line map[string]any) {
	t.Helper()
	for _, field := range c.always {
		if _, ok := line[field]; !ok {
			t.Errorf("line %q: want field %s, got %v", kind, field, line)
		}
	}
	for field := range maps.Keys(line) {
		if !slices.Contains([]string{"time", "level", "msg", "trace_id", "span_id"}, field) &&
			!slices.Contains(c.always, field) &&
			!slices.Contains(c.sometimes, field) {
			t.Errorf("line %q: undocumented field %s: %v", kind, field, line)
		}
	}
}

// lines checks that each kind of canonical line appears as documented, once per occurrence.
func (s *story) lines(t *testing.T) {
	kinds := documented(t)
	if len(kinds) != 4 {
		t.Errorf("got %d documented kinds of lines, want 4", len(kinds))
	}
	for kind, c := range kinds {
		if c.example["msg"] != kind || len(c.always) == 0 {
			t.Errorf("%s: got example %v, want a line of this kind with fields", kind, c.example)
		}
		c.check(t, kind, c.example)
		found := s.of(t, kind, "", nil)
		if len(found) == 0 {
			t.Errorf("line %q: not found", kind)
		}
		for _, line := range found {
			c.check(t, kind, line)
		}
	}
	if lines := s.of(t, "hub session", "hub_id", s.hub.ID); len(lines) != 1 ||
		lines[0]["events_lost"] != 2.0 ||
		lines[0]["requests"] != 2.0 {
		t.Errorf("hub sessions: got %v, want one with 2 lost events and 2 requests", lines)
	}
	commands := s.of(t, "command", "hub_id", s.hub.ID)
	if len(commands) != 2 || commands[0]["answer"] != "hub" ||
		commands[1]["answer"] != "remembered" ||
		commands[0]["command_id"] != commands[1]["command_id"] {
		t.Errorf("commands: got %v, want one answered by the hub and its repeat", commands)
	}
	seen := map[any]bool{}
	for _, line := range s.of(t, "request", "", nil) {
		if seen[line["request_id"]] {
			t.Errorf("request %v: got two lines, want one", line["request_id"])
		}
		seen[line["request_id"]] = true
	}
	streams := s.of(t, "request", "ended", "client")
	if len(streams) == 0 || streams[0]["events"] != 1.0 {
		t.Errorf("streams: got %v, want one event", streams)
	}
}
