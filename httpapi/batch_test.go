package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

// locks are the read models with three locks, of which one is read-only.
type locks struct {
	ReadModels
	hub *domain.HubID
	// asked is when the value of the locks was asked for.
	asked *time.Time
}

func (l locks) States(
	context.Context, domain.Reach, domain.StateFilter, int, domain.StatePosition,
) (page domain.StatesPage, _ error) {
	rooms := []string{"hall", "attic", "hall"}
	for i, room := range rooms {
		page.Data = append(page.Data, domain.ReportedState{
			HubID: *l.hub, SiteID: siteOne, DeviceID: int64(i + 1), Room: &room,
			Channel: domain.Channel{
				Key: "lock", Writable: i != 1, Desired: json.RawMessage("true"),
				Status: domain.ChannelSynchronized,
			},
			Logged: domain.LoggedTimes{Desired: *l.asked},
		})
	}
	return page, nil
}

// One request sets the channels that it names and selects, each once; a repeated request gets the
// same answer, and what became of the commands can be read.
func TestBatch(t *testing.T) {
	t.Parallel()
	asked, hub := day, hubOne
	s := startReal(t, func(c *Config) { c.ReadModels = locks{c.ReadModels, &hub, &asked} })
	hub = s.world.hub.id
	body := s.ids.Replace(`{"key":"lock","value":true,"channels":[{"hub_id":"` + string(hubOne) +
		`","device_id":1},{"hub_id":"` + string(hubTwo) + `","device_id":1}],"select":{"room":"hall"}}`)
	first := s.do("POST", "/v1/commands", body, "Idempotency-Key", "k1")
	var batch struct {
		ID   string
		Data []struct {
			ID       *string
			DeviceID int64 `json:"device_id"`
			Status   string
			Error    *struct{ Type string }
		}
	}
	if err := json.Unmarshal([]byte(first.body), &batch); err != nil || first.StatusCode != 202 {
		t.Fatalf("got %d %s, %v, want 202", first.StatusCode, first.body, err)
	}
	var got []string
	for _, item := range batch.Data {
		why := ""
		if item.Error != nil {
			why = item.Error.Type
		}
		got = append(got, strings.TrimSpace(fmt.Sprint(item.DeviceID, " ", item.Status, " ", why)))
	}
	want := "1 pending,1 rejected not_found,3 rejected not_found" // the hub has no device 3
	if strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	sent := len(s.world.hub.sent)
	again := s.do("POST", "/v1/commands", body, "Idempotency-Key", "k1")
	if again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" ||
		len(s.world.hub.sent) != sent || sent != 1 {
		t.Errorf("repeated: got %s, %v, %d commands sent, want the first answer and one command",
			again.body, again.Header, len(s.world.hub.sent))
	}
	for status, at := range map[string]time.Time{
		"pending": day, "synchronized": time.Now().Add(time.Hour),
	} {
		asked = at
		now := s.do("GET", "/v1/commands/"+batch.ID, "")
		if now.StatusCode != 200 || !strings.Contains(now.body, `"status":"`+status+`"`) {
			t.Errorf("got %d %s, want status %s", now.StatusCode, now.body, status)
		}
	}
	for name, bad := range map[string]string{
		"give channels, or select them":       `{"key":"lock","value":true}`,
		"an array of 1 to 500":                `{"key":"lock","value":true,"channels":[]}`,
		"item 0: unknown field":               `{"key":"lock","value":true,"channels":[{"hub":"x"}]}`,
		"item 0: device_id: is required":      `{"key":"lock","value":true,"channels":[{"hub_id":"` + string(hubOne) + `"}]}`,
		"select: room: must be a string":      `{"key":"lock","value":true,"select":{"room":1}}`,
		"select: must be an object":           `{"key":"lock","value":true,"select":[]}`,
		"is no channel key that commands can": `{"key":"contact2","value":true,"select":{}}`,
		"value: for lock it must be":          `{"key":"lock","value":3,"select":{}}`,
	} {
		message := wantError(t, s.do("POST", "/v1/commands", bad), 400, domain.CodeInvalidRequest)
		if !strings.Contains(message, name) {
			t.Errorf("%s: got %q, want %q in it", bad, message, name)
		}
	}
	for _, id := range []string{"x", string(hubTwo) + ".01K7ZQ3V5T8X2M4N6P8R0S1T2V", siteOne} {
		wantError(t, s.do("GET", "/v1/commands/"+id, ""), 404, domain.CodeNotFound)
	}
}
