package tap

import (
	"fmt"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

const anyHub = domain.HubID("hub-aaaa-aaaa-0001")

func feedMessage(seq uint64) feed.Message {
	return feed.Message{Seq: seq, Event: &feed.Event{Envelope: make([]byte, 100)}}
}

func sequences(messages []feed.Message) string {
	var all []uint64
	for _, m := range messages {
		all = append(all, m.Seq)
	}
	return fmt.Sprint(all)
}

// TestFresh checks that messages of the feed are used only where they directly follow the position.
func TestFresh(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at        uint64
		announced []uint64
		want      string
	}{
		"all":                  {5, []uint64{6, 7, 8}, "[6 7 8]"},
		"some are known":       {7, []uint64{6, 7, 8}, "[8]"},
		"a gap before":         {5, []uint64{7, 8}, "[]"},
		"a gap within":         {5, []uint64{6, 8}, "[]"},
		"announced once more":  {5, []uint64{6, 6, 7}, "[6 7]"},
		"nothing at all":       {5, nil, "[]"},
		"all known by reading": {9, []uint64{6, 7, 8}, "[]"},
	} {
		hs := newHubs(true)
		hs.restore(anyHub, feed.DecodedCursor{Seq: 5})
		for _, seq := range c.announced {
			hs.announce(anyHub, feedMessage(seq))
		}
		h := hs.all[anyHub]
		hs.move(h, feed.DecodedCursor{Seq: c.at})
		if got := sequences(hs.takeFresh(h)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestFreshIsBounded checks the limits of messages that wait for a worker, of one hub and of all.
func TestFreshIsBounded(t *testing.T) {
	t.Parallel()
	hs := newHubs(true)
	for seq := range uint64(3000) {
		for n := range 2 {
			hs.announce(
				domain.HubID(fmt.Sprintf("hub-aaaa-aaaa-%04d", n)), feedMessage(seq+1),
			)
		}
	}
	for id, h := range hs.all {
		if len(h.fresh) > maxFresh || h.known != 3000 {
			t.Errorf(
				"%s: got %d fresh messages, known up to %d, want at most %d, known up to 3000", id,
				len(h.fresh), h.known, maxFresh,
			)
		}
	}
	for n := range 50_000 {
		hs.announce(
			domain.HubID(fmt.Sprintf("hub-aaaa-b%03d-%04d", n%1000, n/1000)), feedMessage(1),
		)
	}
	if limit := maxFreshBytes + freshSize(feedMessage(1)); hs.freshBytes > limit {
		t.Errorf("bytes of all hubs: got %d, want at most %d", hs.freshBytes, limit)
	}
	for _, h := range hs.all {
		hs.dropFresh(h)
	}
	if hs.freshBytes != 0 {
		t.Errorf("bytes after all were dropped: got %d, want 0", hs.freshBytes)
	}
}
