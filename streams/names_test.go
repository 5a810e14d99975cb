package streams_test

import (
	"testing"

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
}
