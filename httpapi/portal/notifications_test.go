package portal_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// withMails configures a portal with links that end mails.
func (w *backend) withMails(cfg *portal.Config) {
	cfg.Unsubscribe, cfg.AlarmMailsPerHour = outbox.OpenAlarmRecords(w.Conns.Cloud), 20
}

// unsubscribePath returns the address of the link for a member of the first organization.
func (w *backend) unsubscribePath(t *testing.T, member string) string {
	t.Helper()
	key, err := outbox.OpenAlarmRecords(w.Conns.Cloud).UnsubscribeKey(t.Context())
	streamstest.Must(t, err)
	token := domain.UnsubscribeToken{OrgID: w.mill.ID, MemberID: member}
	return "/portal/unsubscribe/" + token.Seal(key)
}

// mailsOf returns what a member of the first organization is mailed about.
func (w *backend) mailsOf(t *testing.T, member string) domain.MailPreferences {
	t.Helper()
	org, err := w.Backend.Directory.Org(t.Context(), w.mill.ID)
	streamstest.Must(t, err)
	m, ok := org.Member(member)
	if !ok {
		t.Fatalf("no member %s", member)
	}
	return m.MailPreferences()
}

// Every member chooses topics, sites and quiet hours, and sees what is chosen.
func TestChooseNotifications(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, w.withMails).signIn(max)
	max, _ := w.Access.Membership(w.mill.ID, w.toReal.Replace(max))
	const path = inOne + "/notifications"
	page := b.get(path, 200)
	checkPage(t, page)
	has(
		t, page, "You get no mails about alarms or warnings.", "at most 20 mails an hour",
		`aria-current="page">Notifications`, ">Mill<", "<option>UTC</option>",
	)
	b.post(path+"/test", 400)
	// A site that is ticked is the only one, without another choice.
	if to, _ := b.post(
		path, 303, "topic", "smoke", "topic", "batteries", "site", site, "from", "22:00", "to", "07:00",
		"zone", "Europe/Berlin",
	); to != path {
		t.Errorf("got a redirect to %s, want the page", to)
	}
	if p := w.mailsOf(t, max.MemberID); !p.Wants(domain.MailBatteries, w.mill.SiteID) ||
		p.Wants(domain.MailSmoke, w.quay.SiteID) || p.Wants(domain.MailWater, w.mill.SiteID) ||
		*p.Quiet != (domain.QuietHours{From: "22:00", To: "07:00", Zone: "Europe/Berlin"}) {
		t.Errorf("got %+v, want two topics of one site", p)
	}
	page = b.get(path, 200)
	has(
		t, page, "Saved.", `value="smoke" checked`,
		`value="`+site+`" aria-describedby="sites-hint" checked`,
		"<b>Smoke</b>, <b>Low batteries</b> only at <b><bdi>Mill</bdi></b>.", `value="22:00"`,
		"<option>Europe/Berlin</option><option>UTC</option>",
	)
	_, page = b.post(path, 400, "topic", "smoke", "from", "22:00", "zone", "UTC")
	has(t, checkPage(t, page), "Both must be times of day")
	b.post(path, 400, "topic", "smoke", "site", w.quay.SiteID)
	b.post(path, 400, "topic", "x")
	if p := w.mailsOf(t, max.MemberID); !p.Wants(domain.MailBatteries, w.mill.SiteID) {
		t.Errorf("after rejected forms: got %+v, want the same", p)
	}
	for range 5 {
		b.post(path+"/test", 303)
	}
	b.post(path+"/test", 429)
	if want := "test to " + max.MemberID; len(w.mails) == 0 ||
		!strings.HasPrefix(w.mails[len(w.mails)-1], want) {
		t.Errorf("got the mails %q, want the last to be a test", w.mails)
	}
	b.post(path, 303)
	if p := w.mailsOf(t, max.MemberID); !p.None() || p.Sites != nil || p.Quiet != nil {
		t.Errorf("got %+v, want nothing", p)
	}
	b.get("/portal/"+orgTwo+"/notifications", 404)
}

// The link of a mail ends the mails of one member without a session, by the button of its page. A
// GET alone, as mail scanners send it, ends nothing.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, w.withMails)
	path := w.unsubscribePath(t, w.mill.Owner.ID)
	for _, method := range []string{"GET", "HEAD"} {
		response, page := b.do(method, path, nil, nil)
		if response.StatusCode != 200 || response.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: got %d and %v", method, response.StatusCode, response.Header)
		}
		if method == "GET" {
			checkPage(t, page)
		}
		if method == "GET" && !strings.Contains(page, "&lt;b&gt;Mill&lt;/b&gt;") {
			t.Errorf("got %s, want the organization", page)
		}
	}
	if w.mailsOf(t, w.mill.Owner.ID).None() {
		t.Error("a GET has ended the mails")
	}
	response, page := b.do("POST", path, nil, nil)
	checkPage(t, page)
	if response.StatusCode != 200 || !strings.Contains(page, "Alarm mails stopped") ||
		!strings.Contains(page, `href="../`+orgOne+`/notifications"`) {
		t.Errorf("got %d %s, want a page with a link to choose mails", response.StatusCode, page)
	}
	if !w.mailsOf(t, w.mill.Owner.ID).None() {
		t.Error("the mails have not ended")
	}
	streamstest.Eventually(t, "the change is the member's", func() bool {
		return strings.HasPrefix(w.lastChange(t, w.mill), olga+": org.mail_preferences_set")
	})
}

// The one click of a mail program (RFC 8058) has no cookies, comes from another site, and may be a
// multipart form.
func TestUnsubscribeWithOneClick(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, w.withMails)
	r := httptest.NewRequest("POST", public+w.unsubscribePath(t, w.mill.Owner.ID), strings.NewReader(
		"--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n",
	))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	r.Header.Set("Origin", "https://mail.example.com")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	answer := httptest.NewRecorder()
	b.pages.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK || !w.mailsOf(t, w.mill.Owner.ID).None() {
		t.Errorf("got %d %s, want the mails ended", answer.Code, answer.Body)
	}
}

// A link of nobody, of a former member or with a changed id ends nothing.
func TestUnsubscribeWithAnotherLink(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, w.withMails)
	member, _ := w.Access.Membership(w.mill.ID, w.toReal.Replace(max))
	former := w.unsubscribePath(t, member.MemberID)
	w.open(t, nil).signIn(olga).post(inOne+"/members/max/remove", 303)
	changed := []byte(w.unsubscribePath(t, w.mill.Owner.ID))
	changed[len("/portal/unsubscribe/")+30] ^= 1
	before := w.changes(t)
	for name, path := range map[string]string{
		"a former member": former, "a changed id": string(changed),
		"no token": "/portal/unsubscribe/x",
	} {
		for _, method := range []string{"GET", "POST"} {
			response, page := b.do(method, path, nil, nil)
			if checkPage(t, page); response.StatusCode != 404 ||
				!strings.Contains(page, "This link does not work") ||
				strings.Contains(page, "Mill") {
				t.Errorf("%s: got %d %s, want 404", name, response.StatusCode, page)
			}
		}
	}
	if w.changes(t) != before {
		t.Errorf("got change %q, want none", w.lastChange(t, w.mill))
	}
}
