package httpapi

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/httpapi/portal"
)

// noFaults are hubs that do nothing wrong.
type noFaults struct{}

func (noFaults) HubFaults(context.Context, domain.HubID) ([]portal.HubFault, error) {
	return nil, nil
}

func (noFaults) SilentHubs(context.Context) (map[domain.HubID]time.Time, error) { return nil, nil }

// The list has the portal's conditions in their order, and says if it leaves some out.
func TestAttention(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.attention = []portal.Attention{
		{SiteID: siteOne, Title: "Offline", Condition: attention.Condition{
			ID: "hub_offline", Kind: attention.Offline, Severity: domain.SeverityAlarm, Hub: hubOne,
			Since: since,
		}},
		{SiteID: siteOne, Title: "Battery at 7 %", SeenAt: since, Condition: attention.Condition{
			ID: "battery/0/battery/0", Kind: attention.Battery, Severity: domain.SeverityWarning,
			Hub: hubOne, Name: "Attic", Key: "battery", Value: json.RawMessage("7"),
		}},
	}
	const at = `"2026-01-02T03:04:05.000000Z"`
	offline := `{"id":"` + string(hubOne) + `/hub_offline","kind":"hub_offline","severity":"alarm",` +
		`"title":"Offline","hub_id":"` + string(hubOne) + `","site_id":"` + siteOne + `",` +
		`"device_id":null,"device_name":null,"room":null,"key":null,"endpoint":null,"value":null,` +
		`"desired":null,"event":null,"since":` + at + `,"seen_at":null}`
	got := s.do("GET", "/v1/attention", "")
	if !strings.HasPrefix(got.body, `{"data":[`+offline+`,{`) ||
		!strings.Contains(got.body, `"device_id":0,"device_name":"Attic","room":null,"key":"battery",`+
			`"endpoint":0,"value":7,"desired":null,"event":null,"since":null,"seen_at":`+at) ||
		!strings.HasSuffix(got.body, `"has_more":false}`+"\n") {
		t.Errorf("got %d %s, want both conditions", got.StatusCode, got.body)
	}
	if got := s.do("GET", "/v1/attention?limit=1", ""); got.body != `{"data":[`+offline+`],"has_more":true}`+"\n" {
		t.Errorf("got %d %s, want the first and that there is more", got.StatusCode, got.body)
	}
	if got := s.do("GET", "/v1/attention?site_id=x", ""); !strings.HasPrefix(got.body, `{"data":[],`) {
		t.Errorf("got %d %s, want nothing of what is no site", got.StatusCode, got.body)
	}
	wantError(t, s.do("GET", "/v1/attention?limit=0", ""), 400, domain.CodeInvalidRequest)
}
