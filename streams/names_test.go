package streams_test

import (
	"fmt"
	"hash/fnv"
	"testing"

	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Where a hub's log is follows from this: with another answer the logs of every installation are
// lost.
func TestShardsDoNotChange(t *testing.T) {
	t.Parallel()
	for hub, want := range map[domain.HubID][2]int{ // of 16 and of 64
		"hub-7k2m-q4xd-93ta": {10, 58},
		"hub-0000-0000-0000": {5, 53},
		"ab-zzzz-0000-0001":  {12, 12},
	} {
		if got := [2]int{streams.ShardOf(hub, 16), streams.ShardOf(hub, 64)}; got != want {
			t.Errorf("%q: {%d, %d},", hub, got[0], got[1])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		hub, shards := rapid.StringMatching(`[a-z][a-z0-9]{1,11}(-[a-z0-9]{4}){3}`).
			Draw(t, "hub"),
			rapid.IntRange(1, streams.MaxShards).
				Draw(t, "shards")
		sum := fnv.New32a()
		fmt.Fprint(sum, hub)
		if got, want := streams.ShardOf(domain.HubID(hub), shards), int(sum.Sum32()%uint32(shards)); got != want {
			t.Fatalf("%s of %d shards is in %d, want %d", hub, shards, got, want)
		}
	})
	if streams.ShardAccount(3) != "SHARD03" || streams.ShardAccount(15) != "SHARD15" ||
		streams.ShardAccount(128) != "SHARD128" {
		t.Error("accounts of shards have other names")
	}
}
