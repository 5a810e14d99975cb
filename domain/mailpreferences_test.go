package domain_test

import (
	"reflect"
	"testing"
	"time"

	"hubcloud/domain"
)

var annsOrigin = domain.Origin{
	At: origin.At, Actor: domain.Actor{Kind: domain.ActorMember, ID: ann},
}

const (
	alarms   = domain.MailSmoke
	warnings = domain.MailBatteries
)

func TestDefaultMailPreferences(t *testing.T) {
	t.Parallel()
	for role, want := range map[domain.Role]bool{
		domain.RoleOwner: true, domain.RoleAdmin: true, domain.RoleMember: false,
	} {
		p := domain.OrgMember{Role: role}.MailPreferences()
		if p.Wants(alarms, site1) != want || p.Wants(warnings, site1) || p.None() == want {
			t.Errorf("a member with the role %s: got %+v, want alarms %t", role, p, want)
		}
	}
}

func TestMailPreferences(t *testing.T) {
	t.Parallel()
	const site2 = "01935f2e-0000-7000-8000-000000000002"
	for name, c := range map[string]struct {
		chosen domain.MailPreferences
		// alarm1, warning1 and alarm2 are whether alarms and warnings of site1, and alarms of
		// site2, are mailed.
		alarm1, warning1, alarm2 bool
	}{
		"alarms of all sites": {
			domain.MailPreferences{Topics: []domain.MailTopic{alarms}}, true, false, true,
		},
		"both of one site, with repeats": {
			domain.MailPreferences{
				Topics: []domain.MailTopic{warnings, alarms, alarms},
				Sites:  []string{site1, site1},
			}, true, true, false,
		},
		"nothing": {domain.MailPreferences{}, false, false, false},
		"nothing of one site": {
			domain.MailPreferences{Sites: []string{site1}}, false, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			org := evolveOrg(t)
			events, err := domain.DecideSetMailPreferences(org, annsOrigin, ann, c.chosen)
			if err != nil || len(events) != 1 {
				t.Fatalf("got %d events, %v, want 1", len(events), err)
			}
			before := org.Members[0]
			org, err = domain.EvolveOrg(org, events[0])
			if err != nil {
				t.Fatal(err)
			}
			got := org.Members[0].MailPreferences()
			if got.Wants(alarms, site1) != c.alarm1 || got.Wants(warnings, site1) != c.warning1 ||
				got.Wants(alarms, site2) != c.alarm2 {
				t.Errorf("got %+v", got)
			}
			if before.Mails != nil {
				t.Error("the earlier state has changed")
			}
			again, err := domain.DecideSetMailPreferences(org, annsOrigin, ann, c.chosen)
			if err != nil || len(again) > 0 {
				t.Errorf("the same again: got %d events, %v, want none", len(again), err)
			}
			stored, err := events[0].Fact()
			if err != nil ||
				!reflect.DeepEqual(stored.(domain.MailPreferencesSet).Sites == nil, c.chosen.Sites == nil) {
				t.Errorf("stored %+v, %v", stored, err)
			}
		})
	}
}

func TestMailPreferencesAreTheMembersOwn(t *testing.T) {
	t.Parallel()
	some := domain.MailPreferences{Topics: []domain.MailTopic{alarms}}
	many := domain.MailPreferences{
		Topics: some.Topics, Sites: make([]string, domain.MaxMailSites+1),
	}
	for name, c := range map[string]struct {
		origin domain.Origin
		member string
		chosen domain.MailPreferences
		want   domain.Code
	}{
		"an API key":        {origin, ann, some, domain.CodeForbidden},
		"an unknown member": {annsOrigin, site1, some, domain.CodeNotFound},
		"an unknown topic": {
			annsOrigin, ann, domain.MailPreferences{Topics: []domain.MailTopic{"all"}},
			domain.CodeInvalidRequest,
		},
		"no sites": {
			annsOrigin, ann, domain.MailPreferences{Sites: []string{}}, domain.CodeInvalidRequest,
		},
		"too many sites": {annsOrigin, ann, many, domain.CodeInvalidRequest},
		"quiet hours that are none": {
			annsOrigin, ann, quiet("25:00", "07:00", "UTC"), domain.CodeInvalidRequest,
		},
		"quiet for no time": {
			annsOrigin, ann, quiet("07:00", "07:00", "UTC"), domain.CodeInvalidRequest,
		},
		"quiet in the machine's zone": {
			annsOrigin, ann, quiet("22:00", "07:00", "Local"), domain.CodeInvalidRequest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := domain.DecideSetMailPreferences(evolveOrg(t), c.origin, c.member, c.chosen)
			if domain.CodeOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// quiet returns preferences with quiet hours.
func quiet(from, to, zone string) domain.MailPreferences {
	return domain.MailPreferences{Quiet: &domain.QuietHours{From: from, To: to, Zone: zone}}
}

func TestQuietHours(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, at, until string }{
		"before midnight":          {"22:00", "07:00", "2026-11-28T21:30:00Z", "2026-11-29T06:00:00Z"},
		"after midnight":           {"22:00", "07:00", "2026-11-28T01:00:00Z", "2026-11-28T06:00:00Z"},
		"their end":                {"22:00", "07:00", "2026-11-28T06:00:00Z", ""},
		"the evening before":       {"22:00", "07:00", "2026-11-28T20:59:59Z", ""},
		"within a day":             {"12:00", "14:00", "2026-11-28T11:00:00Z", "2026-11-28T13:00:00Z"},
		"outside of those":         {"12:00", "14:00", "2026-11-28T13:00:00Z", ""},
		"when the clocks are back": {"22:00", "07:00", "2026-10-24T22:00:00Z", "2026-10-25T06:00:00Z"},
	} {
		p := quiet(c.from, c.to, "Europe/Berlin").Quiet
		at, _ := time.Parse(time.RFC3339, c.at)
		want, _ := time.Parse(time.RFC3339, c.until)
		if got := p.Until(at); !got.Equal(want) {
			t.Errorf("%s: got until %s, want %s", name, got, want)
		}
	}
}
