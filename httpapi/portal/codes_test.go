package portal_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// doorCodes are the codes of locks by the rules of the domain, without hubs and secrets.
type doorCodes struct {
	hub domain.HubState
	set []string // the codes that locks were given
}

func (*doorCodes) Make(context.Context, string) (string, error) { return "246801", nil }

func (c *doorCodes) apply(events []domain.Event, err error) error {
	for _, event := range events {
		if c.hub, err = domain.EvolveHub(c.hub, event); err != nil {
			return err
		}
	}
	return err
}

func (c *doorCodes) SetAll(
	_ context.Context, o domain.Origin, all []domain.SetCredential, code string,
) []domain.CredentialResult {
	results := make([]domain.CredentialResult, len(all))
	for i, set := range all {
		c.hub.ID, c.hub.OrgID = set.HubID, set.OrgID
		results[i].Err = c.apply(domain.DecideSetCredential(c.hub, o, set))
		c.set = append(c.set, code)
	}
	return results
}

func (c *doorCodes) Revoke(
	_ context.Context, o domain.Origin, org string, _ domain.HubID, at domain.CredentialSlot,
) error {
	return c.apply(domain.DecideRevokeCredential(c.hub, o, org, at, "revoked"))
}

func (c *doorCodes) Known(
	context.Context, string, domain.HubID, int64,
) ([]domain.Credential, error) {
	return c.hub.CredentialsOf(0), nil
}

// Slots returns the known codes and one that was set at lock 2; lock 1 does not answer.
func (*doorCodes) Slots(
	_ context.Context, _ domain.HubID, device int64,
) (protocol.CredentialSlots, error) {
	if device == 1 {
		return protocol.CredentialSlots{}, domain.Errorf(domain.CodeHubOffline, "the hub is offline")
	}
	return protocol.CredentialSlots{Slots: []int64{1, 9}}, nil
}

// A code is added over several doors and shown once, changed and revoked; a page shows its state.
// Events name its person.
func TestDoorCodes(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	b.reported = []domain.ReportedState{
		b.state(1, "Front door", "lock", "true"), b.state(2, "Shed", "lock", "true"),
		b.state(3, "Hall", "temperature", "20"),
	}
	page := b.page(t, "/codes")
	checkPage(t, page)
	lacks(t, has(t, page, "No door codes yet"), "<bdi>Hall")
	front, shed := string(b.hub)+"/1", string(b.hub)+"/2"
	for problem, form := range map[string]url.Values{
		"Doors: It must be 1 to 500": {"label": {"Anna"}},
		"Code: It must be 4":         {"label": {"Anna"}, "code": {"12"}, "door": {front}},
		"Until: It must be a time":   {"label": {"Anna"}, "valid_until": {"x"}, "door": {front}},
		"Times of the week: Each time needs": {
			"label": {"Anna"}, "door": {front}, "days-0": {"mon"}, "opens-0": {"09:00"}, "closes-0": {"08:00"},
		},
		"Time zone: It must be": {
			"label": {"Anna"}, "door": {front}, "days-0": {"mon"}, "opens-0": {"09:00"},
			"closes-0": {"10:00"}, "time_zone": {"Mars/Olympus"},
		},
		"Until: It must be after “From”": {
			"label": {"Anna"}, "valid_from": {"2099-01-02T00:00"}, "valid_until": {"2099-01-01T00:00"},
			"door": {front},
		},
	} {
		form.Set("once", problem)
		has(t, b.want(t, http.StatusBadRequest, "POST", "/codes", form), problem, `value="Anna"`)
	}
	b.codes.set = nil
	form := url.Values{
		"once": {"1"}, "label": {"Anna"}, "valid_until": {"2099-01-02T18:00"}, "door": {front, shed},
	}
	answer := b.ask("POST", "/codes", form)
	page = read(t, answer)
	checkPage(t, page)
	if answer.StatusCode != http.StatusCreated || !strings.Contains(page, ">246801</code>") ||
		strings.Count(page, ">waits for the lock<") != 2 ||
		!slices.Equal(b.codes.set, []string{"246801", "246801"}) {
		t.Errorf("got %d %s and codes %q, want one of two doors", answer.StatusCode, page, b.codes.set)
	}
	if again := b.ask("POST", "/codes", form); again.StatusCode != http.StatusSeeOther || len(b.codes.set) != 2 {
		t.Errorf("again: got %d and codes %q, want none more", again.StatusCode, b.codes.set)
	}
	page = b.page(t, "/codes")
	lacks(t, page, "246801")
	b.addEvent(0, "channel.observed", 1, `{"key":"alarm","value":{"event":"keypad_unlock","user":1}}`)
	b.addEvent(time.Hour, "channel.observed", 1, `{"key":"alarm","value":{"event":"keypad_unlock","user":1}}`)
	page = b.page(t, "/events")
	if strings.Count(page, "Anna (code 1)") != 1 {
		t.Errorf("got %s, want Anna for the event after the code alone", page)
	}
	page = b.page(t, "/codes?ask=yes")
	checkPage(t, page)
	if strings.Count(page, "<i>Set at the lock</i>") != 1 || !strings.Contains(page, "1 lock did not answer") {
		t.Errorf("got %s, want slot 9 of the lock that answers", page)
	}
	change := url.Values{"credential": {front + "/1"}, "label": {"Ben"}}
	b.want(t, http.StatusSeeOther, "POST", "/codes/change", change)
	if known := b.codes.hub.CredentialsOf(1)[0]; known.Label != "Ben" || known.ValidUntil != nil ||
		b.codes.set[2] != "" {
		t.Errorf("got %+v with codes %q, want Ben's code for ever, unchanged", known, b.codes.set)
	}
	for name, value := range map[string]string{
		"opens-0": "08:00", "closes-0": "00:00", "time_zone": "Europe/Berlin", "opens-1": "", "closes-1": "",
	} {
		change.Set(name, value)
	}
	change["days-0"] = []string{"mon", "tue", "wed", "sun"}
	b.ask("POST", "/codes/change", change)
	page = b.page(t, "/codes")
	if week := b.codes.hub.CredentialsOf(1)[0].Schedule; len(week) != 1 || week[0].Until != "24:00" ||
		!strings.Contains(page, `Mon–Wed, Sun 08:00–24:00 <span class="quiet">Europe/Berlin`) {
		t.Errorf("got %+v and %s, want one time of the week", week, page)
	}
	change.Set("label", " ")
	change.Set("valid_until", "2099-01-02T18:00")
	page = b.want(t, http.StatusBadRequest, "POST", "/codes/change", change)
	has(t, page, "Person: It must", `name="valid_until" value="2099-01-02T18:00"`)
	b.ask("POST", "/codes/revoke", url.Values{"credential": {front + "/1"}})
	page = b.page(t, "/codes")
	has(t, page, ">being removed<", ">waits for the lock<")
	b.signIn(t, b.NewMember(t, "max@"+b.ID+".example.org", domain.RoleMember).Email)
	page = b.page(t, "/codes")
	lacks(t, has(t, page, "Ben"), "/codes/change")
	for _, path := range []string{"/codes", "/codes/change", "/codes/revoke"} {
		b.want(t, http.StatusForbidden, "POST", path, form)
	}
}
