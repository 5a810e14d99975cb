package harness

import (
	"bufio"
	"encoding/json"
	"strconv"
	"strings"
)

// registered is how many hubs a service registers at once.
const registered = 8

// Hub returns a hub that is registered and new. Other hubs may be registered as well: a process for
// each would cost more than most tests.
func (s *Service) Hub() FactoryHub {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hubs) == 0 {
		s.hubs = s.Inventory(registered)
	}
	hub := s.hubs[0]
	s.hubs = s.hubs[1:]
	return hub
}

// Inventory registers new hubs.
func (s *Service) Inventory(count int) []FactoryHub {
	s.t.Helper()
	var hubs []FactoryHub
	for _, hub := range s.CLI(
		"inventory", "generate", "--count", strconv.Itoa(count), "--prefix", "try",
	) {
		hubs = append(hubs, FactoryHub{
			Serial: hub["serial"].(string),
			HubID:  hub["hub_id"].(string),
			Secret: hub["secret"].(string),
		})
	}
	return hubs
}

// Key creates an API key for an organization. Without scopes the key has all of them.
func (s *Service) Key(org string, scopes ...string) (id, key string) {
	s.t.Helper()
	flags := []string{"--all-scopes"}
	if len(scopes) > 0 {
		flags = []string{"--scope", strings.Join(scopes, ",")}
	}
	created := s.CLI(append([]string{"key", "create", "--org", org}, flags...)...)[0]
	return created["key_id"].(string), created["key"].(string)
}

// CLI runs a command of the service's program against the service with --json and returns the
// objects it printed.
func (s *Service) CLI(args ...string) []map[string]any {
	s.t.Helper()
	out, stderr, code := runProgram(s.t, s.program(), nil, s.commandLine(args))
	if code != 0 {
		s.t.Fatalf(
			"hubcloud %s: got exit code %d, want 0: %s%s", strings.Join(args, " "), code, out, stderr,
		)
	}
	var objects []map[string]any
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		object := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			s.t.Fatalf("hubcloud %s printed %q: %v", strings.Join(args, " "), lines.Text(), err)
		}
		objects = append(objects, object)
	}
	return objects
}

// commandLine inserts --data-dir and --json between the command's words and its flags.
func (s *Service) commandLine(args []string) []string {
	line := append([]string{}, args[:min(2, len(args))]...)
	line = append(line, "--data-dir", s.Dir, "--json")
	return append(line, args[min(2, len(args)):]...)
}

// FactoryHub is the identity of a hub as it leaves the factory.
type FactoryHub struct {
	Serial string `json:"serial"`
	HubID  string `json:"hub_id"`
	Secret string `json:"secret"`
}
