package streams_test

import (
	"fmt"
	"hash/fnv"
	"testing"

	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/streams"
)

// TestShardOf checks that hubs stay in their shards: with another result the hub logs of every
// installation would be lost.
func TestShardOf(t *testing.T) {
	t.Parallel()
	for hub, want := range map[domain.HubID][2]int{ // of 16 and of 64
		"hub-7k2m-q4xd-93ta": {10, 58},
		"hub-0000-0000-0000": {5, 53},
		"ab-zzzz-0000-0001":  {12, 12},
	} {
		if got := [2]int{streams.ShardOf(hub, 16), streams.ShardOf(hub, 64)}; got != want {
			t.Errorf("shard of %s among 16 and 64: got %v, want %v", hub, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		hub := rapid.StringMatching(`[a-z][a-z0-9]{1,11}(-[a-z0-9]{4}){3}`).Draw(t, "hub")
		shards := rapid.IntRange(1, streams.MaxShards).Draw(t, "shards")
		sum := fnv.New32a()
		fmt.Fprint(sum, hub)
		want := int(sum.Sum32() % uint32(shards))
		if got := streams.ShardOf(domain.HubID(hub), shards); got != want {
			t.Fatalf("shard of %s among %d: got %d, want %d", hub, shards, got, want)
		}
	})
}

func TestParseSubjects(t *testing.T) {
	t.Parallel()
	const hub = domain.HubID("hub-7k2m-q4xd-93ta")
	for subject, topic := range map[string]string{
		streams.HelloSubject(hub): "hello", streams.EventsSubject(hub): "events",
		streams.ResponseSubject(hub, "a.b"): "response.a.b",
	} {
		if gotHub, gotTopic := streams.ParseHubSubject(subject); gotHub != hub ||
			gotTopic != topic {
			t.Errorf(
				"ParseHubSubject(%q) = %q, %q, want %q, %q", subject, gotHub, gotTopic, hub, topic,
			)
		}
	}
	for _, subject := range []string{
		"feed." + string(hub) + ".event.device", "feed." + string(hub) + ".command",
	} {
		if got := streams.ParseFeedSubject(subject); got != hub {
			t.Errorf("ParseFeedSubject(%q) = %q, want %q", subject, got, hub)
		}
	}
	for subject, want := range map[string]bool{
		streams.HubEventSubject(hub): true, streams.CloudEventSubject(hub): true,
		streams.CommandSubject(hub): false, "": false, "log.event.x": false,
	} {
		if got := streams.IsEventSubject(subject); got != want {
			t.Errorf("IsEventSubject(%q) = %v, want %v", subject, got, want)
		}
	}
}

func TestShardAccount(t *testing.T) {
	t.Parallel()
	for shard, want := range map[int]streams.Account{3: "SHARD03", 15: "SHARD15", 128: "SHARD128"} {
		if got := streams.ShardAccount(shard); got != want {
			t.Errorf("ShardAccount(%d): got %s, want %s", shard, got, want)
		}
	}
}
