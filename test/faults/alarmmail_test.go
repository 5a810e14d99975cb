package faults

import (
	"fmt"
	"io"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/mailserver"
)

var alarmSubject = regexp.MustCompile(`^((?:Ended: )?Smoke detected): .*, Mill site$`)

// alarmTitles returns what the mails about alarms to an address are about, in order: the begin of
// each subject. A mail that a kill has doubled has the same id and counts once: the service may be
// killed after the mail server took a mail, and before it has removed the mail from the queue.
func alarmTitles(t *testing.T, s *mailserver.Server, address string) (titles []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range s.MailsTo(address) {
		id := headerOf(t, m).Get("Message-ID")
		subject, _ := m.Read(t)
		if found := alarmSubject.FindStringSubmatch(subject); found != nil && !seen[id] {
			titles = append(titles, found[1])
		}
		seen[id] = true
	}
	return titles
}

func headerOf(t *testing.T, m mailserver.Mail) mail.Header {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(m.Raw))
	if err != nil {
		t.Fatalf("mail to %s: %v", m.To, err)
	}
	return message.Header
}

// oneClickLink returns the address of the first alarm mail that a mail program posts to for the user (RFC 8058).
func oneClickLink(t *testing.T, mails []mailserver.Mail) string {
	t.Helper()
	first := slices.IndexFunc(mails, func(m mailserver.Mail) bool {
		return alarmSubject.MatchString(headerOf(t, m).Get("Subject"))
	})
	if first < 0 {
		t.Fatal("got no mail about an alarm")
	}
	header := headerOf(t, mails[first])
	link := header.Get("List-Unsubscribe")
	if post := header.Get("List-Unsubscribe-Post"); post != "List-Unsubscribe=One-Click" ||
		!strings.HasPrefix(link, "<http") || !strings.HasSuffix(link, ">") {
		t.Fatalf("got List-Unsubscribe %q and List-Unsubscribe-Post %q", link, post)
	}
	return strings.Trim(link, "<>")
}

// TestAlarmMails checks that smoke is mailed once when it begins and once when it ends, although
// the service is killed in between, and that the link in a mail ends further mails without a
// session. A GET of the link, as mail scanners send it, ends nothing.
func TestAlarmMails(t *testing.T) {
	t.Parallel()
	server := mailserver.Start(t, mailserver.Options{})
	target := harness.NewTarget(t, "--smtp-url", "smtp://"+server.Address)
	s := target.OwnService()
	tenant := target.Tenant("Mill")
	const admin = "ann@example.org"
	tenant.Must(http.MethodPost, "/invitations", map[string]string{
		"email": admin, "role": "admin",
	}, http.StatusCreated)
	_, invitation := awaitMail(t, server, admin)
	harness.Open(t, http.MethodGet, portalLink.FindString(invitation))
	hub := target.VirtualHub(tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{
		{Kind: "smoke_alarm", Name: "Landing alarm"},
	}})
	smoke := func(active bool) {
		t.Helper()
		harness.Must(t, hub.Report(1, virtualhub.ChannelRef{Key: "smoke"}, active))
	}
	// await waits until each address has that many mails about the smoke, and the service has
	// decided about all mails.
	await := func(count int, addresses ...string) {
		t.Helper()
		for _, address := range addresses {
			streamstest.Eventually(t, fmt.Sprintf("%s has %d mails", address, count), func() bool {
				return len(alarmTitles(t, server, address)) >= count
			})
		}
		streamstest.Eventually(t, "no mail waits to be queued", func() bool {
			return s.Metrics().Value(t, "hubcloud_notifier_waiting_mails") == 0
		})
	}
	check := func(when, address string, want ...string) {
		t.Helper()
		if got := alarmTitles(t, server, address); !slices.Equal(got, want) {
			t.Errorf("%s: %s got mails %q, want %q", when, address, got, want)
		}
	}
	// restart kills the service, and waits until it has observed the conditions.
	restart := func() {
		t.Helper()
		s.Kill()
		s.Begin()
		streamstest.Eventually(t, "the conditions are observed again", func() bool {
			metrics := s.Metrics()
			served := metrics.Value(t, "hubcloud_notifier_turn_seconds")
			return served-metrics.Value(t, "hubcloud_notifier_failures_total") >= 1
		})
		if queued := s.Metrics().Value(t, "hubcloud_notifier_mails_total"); queued != 0 {
			t.Errorf("after a restart: %v mails were queued, want none", queued)
		}
	}

	const begin, end = "Smoke detected", "Ended: Smoke detected"
	smoke(true)
	await(1, tenant.Owner, admin)
	restart()
	check("after a restart", tenant.Owner, begin)
	check("after a restart", admin, begin)

	link := oneClickLink(t, server.MailsTo(tenant.Owner))
	for range 2 {
		if page := harness.Open(t, http.MethodGet, link); page.Status != http.StatusOK ||
			!strings.Contains(string(page.Body), "Stop these mails</button>") {
			t.Errorf("GET %s: got %d %s, want a page that asks", link, page.Status, page.Body)
		}
	}
	smoke(false)
	await(2, tenant.Owner, admin)
	restart()
	check("after GET of the link", tenant.Owner, begin, end)

	answer, err := http.PostForm(link, url.Values{"List-Unsubscribe": {"One-Click"}})
	harness.Must(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK ||
		!strings.Contains(string(page), "Alarm mails stopped") {
		t.Errorf("POST %s: got %s %s, %v, want a page that confirms", link, answer.Status, page, err)
	}
	smoke(true)
	await(3, admin)
	check("after POST of the link", tenant.Owner, begin, end)
	check("another member", admin, begin, end, begin)
	if strings.Contains(s.Log(), link[strings.LastIndexByte(link, '/')+1:]) {
		t.Error("the log contains the secret of the link")
	}
}
