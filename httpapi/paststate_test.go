package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// The state of a hub with so many or so large values that they do not fit into one response was
// answered with rate_limited for ever. It is divided into pages, which have each channel once.
func TestPastStateInPages(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	value := json.RawMessage(`"` + strings.Repeat("x", 4000) + `"`)
	want := map[string]bool{}
	for device := range int64(40) {
		for _, key := range []string{"a", "b/b", "c"} {
			for endpoint := range int64(10) {
				want[fmt.Sprint(device, key, endpoint)] = true
				s.past = append(s.past, domain.PastChannel{
					DeviceID: device, Basis: "event", Channel: domain.Channel{
						Key: key, Kind: key, Endpoint: endpoint, Value: value,
						Status: domain.ChannelSynchronized,
					},
				})
			}
		}
	}
	query, pages := url.Values{}, 0
	for more := true; more; pages++ {
		a := s.do("GET", "/v1/hubs/"+string(hubOne)+"/state?"+query.Encode(), "")
		if a.StatusCode != http.StatusOK || len(a.body) > 2*pastPageBytes {
			t.Fatalf("page %d: got %d and %d bytes", pages, a.StatusCode, len(a.body))
		}
		var page pastStateBody
		streamstest.Must(t, json.Unmarshal([]byte(a.body), &page))
		for _, item := range page.Data {
			id := fmt.Sprint(item.Device.ID, item.Channel.Key, item.Channel.Endpoint)
			if !want[id] {
				t.Fatalf("page %d: got %s again", pages, id)
			}
			delete(want, id)
		}
		more = page.HasMore
		if more == (page.Next == "") {
			t.Fatalf("page %d: has_more %t with next_starting_after %q", pages, more, page.Next)
		}
		query = url.Values{"at": {page.At}, "starting_after": {page.Next}}
	}
	if pages < 3 || len(want) > 0 {
		t.Errorf("got %d pages that lack %d channels, want all in several pages", pages, len(want))
	}
}
