package commands_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

// TestOnceInAnyHistory tries random histories of commands under two keys at two replicas: the hub
// accepts, rejects, fails, acts without answering or is offline, and replicas are killed. Under one
// key the hub must run one command once, the first final answer must stay the answer, and any other
// command must be a conflict.
func TestOnceInAnyHistory(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	replicas := map[string]*replica{}
	names := []string{"r1", "r2"}
	start := func(name string) {
		replicas[name] = cloud.replica(name, hubTimeout(30*time.Millisecond))
	}
	for _, name := range names {
		start(name)
	}
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		histories++
		type known struct {
			value string // what the key stands for
			final outcome
		}
		keys := map[string]*known{}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			key := fmt.Sprintf(
				"%d-%s", histories, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key"),
			)
			value := rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "value")
			name := rapid.SampledFrom(names).Draw(rt, "replica")
			behavior := rapid.SampledFrom([]string{
				"accepts", "rejects", "unavailable", "silent", "fails", "offline", "kills",
			}).
				Draw(rt, "behavior")
			p := replicas[name]
			cloud.hub.set(func(h *hub) {
				h.offline = behavior == "offline"
				h.before = nil
				h.act = func(c hubCommand) (string, bool) {
					switch behavior {
					case "rejects":
						return rejects("command_refused"), true
					case "unavailable":
						return rejects("hub_unavailable"), false
					case "fails":
						return `"result":[]`, false
					case "silent":
						h.ran = append(h.ran, c.CommandID)
						h.answers[c.CommandID] = accepts(c, len(h.ran))
						return "", false
					case "kills":
						go p.kill()
					}
					return accepts(c, len(h.ran)+1), true
				}
			})
			c := cloud.command(key)
			c.Value = json.RawMessage(value)
			got := p.sent(c)
			if behavior == "kills" {
				p.kill()
				start(name)
			}
			k := keys[key]
			conflict := k != nil && k.value != value
			switch {
			case behavior == "kills" && got.err != "":
			case conflict != strings.HasPrefix(got.err, string(domain.CodeIdempotencyConflict)+":"):
				rt.Fatalf(
					"%s %s at %s (%s): %+v; the key stands for %+v", key, value, name, behavior,
					got, k,
				)
			}
			if conflict || behavior == "offline" && k == nil {
				continue
			}
			if k == nil {
				// A replica that is killed while the hub runs the command has reserved the key.
				k = &known{value: value}
				keys[key] = k
			}
			if k.final != (outcome{}) && behavior != "kills" && got != k.final {
				rt.Fatalf(
					"%s %s at %s (%s): %+v; it was %+v", key, value, name, behavior, got, k.final,
				)
			}
			// A killed process could answer nothing: an answer that it could not store does not
			// count.
			if behavior != "kills" && (got.err == "" || got.err == "command_refused: because") {
				k.final = got
			}
		}
	})
	cloud.hub.mu.Lock()
	defer cloud.hub.mu.Unlock()
	ran := slices.Clone(cloud.hub.ran)
	slices.Sort(ran)
	if len(slices.Compact(ran)) != len(cloud.hub.ran) {
		t.Error("an id was run twice")
	}
}
