package mail_test

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/httpapi/mail"
	"hubcloud/streams/streamstest"
)

const (
	alarmOrg    = "01940000-0000-7000-8000-000000000001"
	alarmMember = "01940000-0000-7000-8000-0000000000aa"
)

// alarmMailer returns a mailer into a folder. recipient is the address of the member.
func alarmMailer(t *testing.T, q mail.Queue, recipient *string) (*mail.Mailer, string) {
	t.Helper()
	dir := t.TempDir()
	folder, err := mail.NewFolder(dir)
	streamstest.Must(t, err)
	return newMailer(t, mail.Config{
		From: netmail.Address{Address: "hubs@example.org"}, Queue: q, Transport: folder,
		AlarmRecipient: func(_ context.Context, org, member string) (string, error) {
			if org != alarmOrg || member != alarmMember {
				t.Errorf("asked for the address of member %s of %s", member, org)
			}
			return *recipient, nil
		},
		UnsubscribeToken: func(_ context.Context, org, member string) (string, error) {
			return "token-of-" + org + "-" + member, nil
		},
	}), dir
}

func smoke() attention.Notice {
	return attention.Notice{
		Number: 1, Cause: "c0ffee", Kind: attention.Smoke, Severity: domain.SeverityAlarm,
		Title: "Smoke detected", Device: "Kitchen sensor", Room: "Kitchen",
		Hub: "hub-7k2m-q4xd-93ta", HubName: "Hub 12", Site: "North site",
		Since: now.Add(-time.Minute),
	}
}

// sent queues and delivers a mail, and returns it.
func sent(t *testing.T, m attention.Mail) received {
	t.Helper()
	q, recipient := &queue{}, "ann@example.org"
	mailer, dir := alarmMailer(t, q, &recipient)
	m.ID, m.MemberID, m.At = "m1", alarmMember, now
	org := domain.OrgState{ID: alarmOrg, Name: "Acme"}
	streamstest.Must(t, mailer.SendAlarm(t.Context(), org, m))
	if q.ids[0] != "m1" || !q.expires[0].Equal(now.Add(24*time.Hour)) {
		t.Errorf("queued as %q until %s", q.ids, q.expires)
	}
	if text := string(q.contents[0]); strings.Contains(text, "token-of") ||
		strings.Contains(text, recipient) || len(text) > 64<<10 {
		t.Errorf("the queue has the link or the address, or %d bytes: %.200s", len(text), text)
	}
	streamstest.Must(t, mailer.Deliver(t.Context(), q.contents[0]))
	return readMail(t, fileIn(t, dir))
}

func TestAlarmMail(t *testing.T) {
	t.Parallel()
	got := sent(t, attention.Mail{Notices: []attention.Notice{smoke()}})
	unsubscribe := publicURL + "/portal/unsubscribe/token-of-" + alarmOrg + "-" + alarmMember
	if got.subject != "Smoke detected: Kitchen sensor, Hub 12, North site" {
		t.Errorf("got subject %q", got.subject)
	}
	for name, want := range map[string]string{
		"To": "<ann@example.org>", "List-Unsubscribe": "<" + unsubscribe + ">",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
		"References":            "<c0ffee@example.org>", "Message-Id": "<m1@example.org>",
	} {
		if got := strings.TrimSpace(got.header.Get(name)); got != want {
			t.Errorf("header %s: got %q, want %q", name, got, want)
		}
	}
	for _, want := range []string{
		"Smoke detected", "Kitchen sensor", "Hub 12", "North site", "Acme",
		"2 January 2026, 15:03:05 UTC", "Get people out and call the fire brigade.",
		publicURL + "/portal/" + alarmOrg + "/hubs/hub-7k2m-q4xd-93ta",
		publicURL + "/portal/" + alarmOrg + "/notifications", unsubscribe,
	} {
		if !strings.Contains(got.text, want) || !strings.Contains(got.html, want) {
			t.Errorf("no %q in one of the parts: %s\n%s", want, got.text, got.html)
		}
	}
	if strings.Contains(got.text, "Ended") {
		t.Errorf("got an end in %s", got.text)
	}
}

// A condition of a hub has no device, and hostile names stay data.
func TestAlarmOfHostileHub(t *testing.T) {
	t.Parallel()
	n := smoke()
	n.Title, n.Device, n.Room = "Hub offline", "", ""
	n.HubName = "Hub\r\nBcc: eve@example.org <b>" + strings.Repeat("W", 100)
	got := sent(t, attention.Mail{Notices: []attention.Notice{n}})
	subject := strings.ReplaceAll(got.subject, " \u00A0", "  ")
	if !strings.HasPrefix(subject, "Hub offline: Hub  Bcc: eve@example.org <b>W") ||
		len(subject) > 120 || got.header.Get("Bcc") != "" ||
		strings.Contains(got.html, "<b>W") || strings.Contains(got.text, "Device:") {
		t.Errorf("got %q: %s", subject, got.html)
	}
}

// The subject of a digest was "5 more alarm notices", with smoke somewhere in it.
func TestDigestMail(t *testing.T) {
	t.Parallel()
	begin, end := smoke(), smoke()
	end.Ended, end.Title = now, "Water leak"
	warning := smoke()
	warning.Title, warning.Kind, warning.Severity = "Low battery", "battery", domain.SeverityWarning
	got := sent(t, attention.Mail{
		Digest: true, More: 3, Notices: []attention.Notice{end, warning, begin},
	})
	if got.subject != "Smoke detected: Kitchen sensor, Hub 12, North site, and 5 more" {
		t.Errorf("got subject %q", got.subject)
	}
	for _, want := range []string{
		"Smoke detected: Kitchen sensor, Hub 12, North site",
		"Ended: Water leak: Kitchen sensor, Hub 12, North site", "And 3 more.",
		"2 January 2026, 15:03:05 UTC", publicURL + "/portal/unsubscribe/token-of",
	} {
		if !strings.Contains(got.text, want) || !strings.Contains(got.html, want) {
			t.Errorf("no %q in one of the parts: %s\n%s", want, got.text, got.html)
		}
	}
}

// Many conditions of one kind at one site are one mail, which says how many there are by now.
func TestGroupMail(t *testing.T) {
	t.Parallel()
	upstairs, offline, end := smoke(), smoke(), smoke()
	upstairs.Device = "Landing sensor"
	offline.Kind, offline.Title, offline.Device = attention.Offline, "Hub offline", ""
	end.Ended = now
	for want, m := range map[string]attention.Mail{
		"Smoke detected: 2 devices, North site": {
			Urgent: true, Standing: 2, Notices: []attention.Notice{smoke(), upstairs},
		},
		"Smoke detected: 2 devices more, 5 in all, North site": {
			Urgent: true, Standing: 5, Notices: []attention.Notice{smoke(), upstairs},
		},
		"Smoke detected: Kitchen sensor, Hub 12, North site (6 at this site now)": {
			Urgent: true, Standing: 6, Notices: []attention.Notice{smoke()},
		},
		"Smoke detected: 1 device, North site": {
			Urgent: true, Standing: 1, Notices: []attention.Notice{end, upstairs},
		},
		"Hub offline: 22 hubs, North site": {
			Standing: 22, More: 20, Notices: []attention.Notice{offline, offline},
		},
		"Ended: Smoke detected: 2 devices, North site": {
			Notices: []attention.Notice{end, end}, Standing: 4,
		},
	} {
		got := sent(t, m)
		if got.subject != want || !strings.Contains(got.text, "Hub 12") {
			t.Errorf("got %q, want %q", got.subject, want)
		}
		fire := strings.Contains(got.text, "fire brigade") && strings.Contains(got.html, "fire brigade")
		if fire != strings.HasPrefix(want, "Smoke") {
			t.Errorf("%s: the advice is wrong: %s", want, got.text)
		}
	}
}

// A digest that would not fit into the queue lists less.
func TestLargeDigest(t *testing.T) {
	t.Parallel()
	long := smoke()
	long.Device, long.HubName, long.Site = strings.Repeat("é", 200), strings.Repeat("h", 200), "s"
	notices := make([]attention.Notice, 100)
	for i := range notices {
		notices[i] = long
	}
	got := sent(t, attention.Mail{Digest: true, Notices: notices})
	listed := strings.Count(got.text, "Smoke detected")
	if !strings.HasSuffix(got.subject, ", and 99 more") || listed < 40 || listed == 100 ||
		!strings.Contains(got.text, fmt.Sprintf("And %d more.", 100-listed)) {
		t.Errorf("got %q with %d notices: %.300s", got.subject, listed, got.text)
	}
}

// A member who has left or unsubscribed gets no mail that still waits.
func TestAlarmWithoutRecipient(t *testing.T) {
	t.Parallel()
	q, recipient := &queue{}, ""
	mailer, dir := alarmMailer(t, q, &recipient)
	err := mailer.SendAlarm(t.Context(), domain.OrgState{ID: alarmOrg}, attention.Mail{
		ID: "m1", MemberID: alarmMember, At: now, Notices: []attention.Notice{smoke()},
	})
	streamstest.Must(t, err)
	if err := mailer.Deliver(t.Context(), q.contents[0]); !errors.Is(err, mail.ErrObsolete) {
		t.Errorf("got %v, want ErrObsolete", err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*.eml")); err != nil || len(files) > 0 {
		t.Errorf("got files %v, %v, want none", files, err)
	}
	broken := []byte(`{"alarm":{"org_id":"o","member_id":"m"}}`)
	if err := mailer.Deliver(t.Context(), broken); !errors.Is(err, mail.ErrRejected) {
		t.Errorf("a mail without notices: got %v, want ErrRejected", err)
	}
}

// A test mail has the form of a mail about an alarm, and says that nothing is to be done.
func TestTestMail(t *testing.T) {
	t.Parallel()
	q, recipient := &queue{}, "ann@example.org"
	mailer, dir := alarmMailer(t, q, &recipient)
	org := domain.OrgState{ID: alarmOrg, Name: "Acme"}
	streamstest.Must(t, mailer.SendTest(t.Context(), org, alarmMember))
	streamstest.Must(t, mailer.Deliver(t.Context(), q.contents[0]))
	raw := fileIn(t, dir)
	for _, want := range []string{
		"Subject: Test mail\r\n", "What to do: Nothing.", "/portal/" + alarmOrg + "\r\n", "token-of-",
	} {
		if !strings.Contains(raw, want) {
			t.Errorf("got %s, want %q in it", raw, want)
		}
	}
}
