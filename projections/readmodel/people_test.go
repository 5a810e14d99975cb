package readmodel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// Activity shows present names, also of former members, and only to the organization.
func TestActivityShowsPresentNames(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	name, room := "Front door", "Hall"
	w.Append(
		t, streams.OrgSubject(org), domain.OrgCreated{OrgID: org, Name: "Mill"},
		projectionstest.MemberAdded(org, 1, domain.RoleOwner),
	)
	w.Append(t, streams.OrgSubject(other), domain.OrgCreated{OrgID: other, Name: "Bay"})
	w.AddSite(t, org, 1)
	w.AddSite(t, org, 2)
	w.AddHub(t, org, 1, 1)
	w.Append(
		t, streams.HubSubject(hubID(1)), projectionstest.HubMoved(org, 1, 2),
		domain.DeviceLabeled{HubID: hubID(1), OrgID: org, DeviceID: 3, Name: &name, Room: &room},
	)
	w.Do(t, s, streams.OrgSubject(org), projectionstest.MemberRemoved(org, 1))
	page, err := s.Activity(t.Context(), org, 3, 0)
	if err != nil || !page.HasMore || len(page.Data) != 3 {
		t.Fatalf("Keys: got %+v, %v, want three keys", page, err)
	}
	site, err := s.Site(t.Context(), org, siteID(2))
	streamstest.Must(t, err)
	// A revoked invitation was shown only by its id.
	w.Do(
		t, s, streams.OrgSubject(org),
		projectionstest.MemberInvited(org, 9, time.Now().Add(time.Hour), ""),
		domain.MemberInvitationRevoked{OrgID: org, InvitationID: invitationID(9)},
	)
	last, err := s.Activity(t.Context(), org, 1, 0)
	if err != nil || last.Data[0].Type != (domain.MemberInvitationRevoked{}).EventType() ||
		last.Data[0].SubjectName != projectionstest.MemberInvited(org, 9, time.Time{}, "").Email {
		t.Errorf("%+v, %v", last, err)
	}
	removed, labeled, moved := page.Data[0], page.Data[1], page.Data[2]
	if removed.Type != (domain.MemberRemoved{}).EventType() || removed.SubjectName != "P1@example.org" ||
		removed.Actor != projectionstest.Operator {
		t.Errorf("%+v", removed)
	}
	if labeled.Type != (domain.DeviceLabeled{}).EventType() || labeled.SubjectID != "3" ||
		labeled.Hub != hubID(1) ||
		labeled.Detail != "Front door, Hall" {
		t.Errorf("%+v", labeled)
	}
	if moved.Type != (domain.HubMoved{}).EventType() || moved.SubjectID != string(hubID(1)) ||
		moved.Detail != site.Name {
		t.Errorf("%+v, site %q", moved, site.Name)
	}
	rest, err := s.Activity(t.Context(), org, 50, moved.Sequence)
	if err != nil || rest.HasMore || len(rest.Data) != 5 ||
		rest.Data[4].Type != (domain.OrgCreated{}).EventType() ||
		rest.Data[4].Detail != "Mill" {
		t.Errorf("%+v, %v", rest, err)
	}
	if foreign, err := s.Activity(t.Context(), other, 50, 0); err != nil || len(foreign.Data) != 1 {
		t.Errorf("activity of the other organization: got %+v, %v, want one event", foreign, err)
	}
}

// Keys in force come first, the newest first. Each key of the organization is on one page, also if
// several were created at the same moment, and Key returns each.
func TestKeysHavePages(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	var last uint64
	for i := range 9 {
		id := fmt.Sprint("key", i)
		last = w.AppendAt(
			t,
			at.Add(time.Duration(i/3)*time.Hour),
			streams.KeySubject(id),
			domain.KeyCreated{
				KeyID: id, OrgID: org, Label: "the " + id, Environment: domain.EnvironmentDev,
				Scopes: []domain.Scope{domain.ScopeHubsRead}, SecretHash: make([]byte, 32),
			},
		)
		if i%4 == 0 {
			last = w.Append(t, streams.KeySubject(id), domain.KeyRevoked{KeyID: id, OrgID: org})
		}
	}
	projectionstest.Await(t, s, last)
	ids := everyPage(t, 2, func(limit int, after string) (domain.Page[domain.KeyView], error) {
		return s.Keys(t.Context(), org, limit, after)
	}, func(key domain.KeyView) string { return key.ID })
	const want = "key6 key7 key3 key5 key1 key2 key8 key4 key0"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("pages: got %s, want %s", got, want)
	}
	if key, err := s.Key(t.Context(), org, "key4"); err != nil || key.ID != "key4" ||
		key.Label != "the key4" || len(key.Scopes) != 1 || key.RevokedAt.IsZero() {
		t.Errorf("Key(key4): got %+v, %v, want the revoked key", key, err)
	}
	for _, wrong := range [][2]string{{other, "key4"}, {org, "none"}, {org, "\x00\xff"}} {
		if _, err := s.Key(t.Context(), wrong[0], wrong[1]); !isCode(err, domain.CodeNotFound) {
			t.Errorf("Key%q: got %v, want not_found", wrong, err)
		}
		if _, err := s.Keys(t.Context(), wrong[0], 2, wrong[1]); err == nil ||
			domain.CodeOf(err) == domain.CodeInternal {
			t.Errorf("Keys%q: got %v, want an error of the caller", wrong, err)
		}
	}
}

// Hubs are found by name, id or serial and members by address, within organization, site and page.
func TestFindHubsAndMembers(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	w.Append(
		t, streams.OrgSubject(org), domain.OrgCreated{OrgID: org, Name: "Mill"},
		projectionstest.MemberAdded(org, 1, domain.RoleOwner),
		projectionstest.MemberAdded(org, 2, domain.RoleMember),
	)
	w.AddSite(t, org, 1)
	w.AddSite(t, org, 2)
	w.AddHub(t, org, 1, 1)
	w.AddHub(t, org, 2, 2)
	name := "50 %_Öst"
	w.Do(
		t, s, streams.HubSubject(hubID(2)),
		domain.HubRenamed{HubID: hubID(2), OrgID: org, Name: &name},
	)
	one, two := string(hubID(1)), string(hubID(2))
	for _, c := range []struct{ site, text, found string }{
		{"", "", one + " " + two}, {siteID(1), "", one},
		{siteID(1), "st", ""}, {"", "ÖST", two},
		{"", "%_", two}, {"", "%", two}, {"", "'", ""},
		{"", strings.ToUpper(two), two},
		{"", strings.ToUpper(strings.ReplaceAll(one, "-", "")), one}, {"none", "", ""},
		{"", "\x00\xff", ""},
	} {
		page, err := s.FindHubs(t.Context(), org, c.site, c.text, 50, "")
		var ids []string
		for _, hub := range page.Data {
			ids = append(ids, string(hub.ID))
		}
		if got := strings.Join(ids, " "); got != c.found || err != nil {
			t.Errorf(
				"FindHubs(%q) at site %q: got %s, %v, want %s", c.text, c.site, got, err, c.found,
			)
		}
	}
	if page, err := s.FindHubs(t.Context(), org, "", "", 1, ""); err != nil || !page.HasMore ||
		len(page.Data) != 1 {
		t.Errorf("first page: got %+v, %v, want one hub and more", page, err)
	}
	if page, err := s.FindHubs(t.Context(), org, "", "", 1, one); err != nil || page.HasMore ||
		len(page.Data) != 1 ||
		string(page.Data[0].ID) != two {
		t.Errorf("second page: got %+v, %v, want the second hub and no more", page, err)
	}
	if page, err := s.FindHubs(t.Context(), other, "", "", 50, ""); err != nil ||
		len(page.Data) != 0 {
		t.Errorf("hubs of another organization: got %+v, %v, want none", page, err)
	}
	if _, err := s.FindHubs(t.Context(), other, "", "", 50, one); domain.CodeOf(
		err,
	) != domain.CodeInvalidRequest {
		t.Errorf("starting_after of another organization: got %v, want invalid_request", err)
	}
	if page, err := s.FindMembers(t.Context(), org, "p2@", 50, ""); err != nil ||
		len(page.Data) != 1 ||
		page.Data[0].ID != memberID(2) {
		t.Errorf("FindMembers(p2@): got %+v, %v, want the second member", page, err)
	}
}
