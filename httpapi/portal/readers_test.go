package portal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/feed/orgfeed"
	"hubcloud/streams/streamstest"
)

// The page of readers shows what each reads, how many events it is behind, and whether its place is
// lost or nearly lost. Other organizations' readers are not on it.
func TestReaders(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	const retention = 24 * time.Hour
	behind := uint64(12)
	registry, err := orgfeed.NewRegistry(orgfeed.RegistryConfig{
		Conn: w.Conns.Cloud, Bucket: w.Buckets.FeedReaders, Retention: retention,
		Counted: func(string) uint64 { return 0 },
		Owns:    func(_ string, hub domain.HubID) bool { return hub == w.hub },
		HubLag: func(context.Context, domain.HubID, string) (domain.FeedLag, error) {
			return domain.FeedLag{Behind: behind, At: w.clock()}, nil
		},
		Now: w.clock,
	})
	streamstest.Must(t, err)
	w.retention = retention
	b := w.open(t, func(cfg *portal.Config) { cfg.Readers = registry }).signIn(max)
	page := b.get(inOne+"/readers", 200)
	has(t, checkPage(t, page), "No program has named itself yet.")
	saw := func(org string, id domain.FeedReaderID, age time.Duration) {
		registry.Saw(org, id, "position", domain.FeedLag{Behind: 7, At: w.clock().Add(-age)})
	}
	saw(w.mill.ID, domain.FeedReaderID{Name: "<b>wall panel</b>"}, 0)
	saw(w.mill.ID, domain.FeedReaderID{Name: "archive", Part: "2/8"}, retention-time.Hour)
	saw(w.mill.ID, domain.FeedReaderID{Name: "billing", Hub: w.hub}, retention/2)
	saw(w.mill.ID, domain.FeedReaderID{Name: "stopped"}, retention+time.Hour)
	saw(w.quay.ID, domain.FeedReaderID{Name: "foreign"}, 0)
	page = b.get(inOne+"/readers", 200)
	checkPage(t, page)
	_, rows, _ := strings.Cut(page, `<ul class="rows">`)
	shown := map[string]string{}
	for row := range strings.SplitSeq(rows, "<li") {
		if _, name, found := strings.Cut(row, "<bdi>"); found {
			name, text, _ := strings.Cut(name, "</bdi>")
			shown[name] = text
		}
	}
	for name, wants := range map[string][]string{
		"&lt;b&gt;wall panel&lt;/b&gt;": {"all hubs, last read", "position expires", "Events behind: 7"},
		"archive":                       {"about to lose events", "part 2/8", "Events behind: 7"},
		"billing":                       {string(ownHub), "Events behind: 12"},
		"stopped":                       {"expired", "Lost its place"},
	} {
		has(t, shown[name], wants...)
		if tagged := strings.Contains(shown[name], `class="tag`); tagged !=
			(name == "archive" || name == "stopped") {
			t.Errorf("reader %s: got %s, want a tag only if events are in danger", name, shown[name])
		}
	}
	if len(shown) != 4 {
		t.Errorf("got readers %v, want the four of the organization", shown)
	}
	b.get("/portal/"+orgTwo+"/readers", 404)
}
