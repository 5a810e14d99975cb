package faults

import (
	"bytes"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"hubcloud/test/harness"
)

// sink is a mail server on one address that can be away. Its answers to a recipient are the test's.
type sink struct {
	t       *testing.T
	address string
	rcpt    func(to string) error

	mu    sync.Mutex
	mails []arrived
}

type arrived struct{ to, subject, text string }

func newSink(t *testing.T, rcpt func(to string) error) *sink {
	t.Helper()
	return &sink{t: t, address: harness.FreeAddress(t), rcpt: rcpt}
}

// open makes the server reachable until the test ends.
func (s *sink) open() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	server := smtp.NewServer(
		smtp.BackendFunc(
			func(*smtp.Conn) (smtp.Session, error) { return &sinkSession{sink: s}, nil },
		),
	)
	server.Domain, server.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	s.t.Cleanup(func() {
		server.Close()
		serving.Wait()
	})
}

// to gives the mails that arrived for an address.
func (s *sink) to(address string) (mails []arrived) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mails {
		if m.to == address {
			mails = append(mails, m)
		}
	}
	return mails
}

// await waits for the one mail to an address.
func (s *sink) await(address string) arrived {
	s.t.Helper()
	harness.Eventually(
		s.t, time.Minute, "a mail to "+address, func() bool { return len(s.to(address)) > 0 },
	)
	mails := s.to(address)
	if len(mails) != 1 {
		s.t.Errorf("%d mails arrived for %s", len(mails), address)
	}
	return mails[0]
}

type sinkSession struct {
	sink *sink
	to   string
}

func (s *sinkSession) Reset()                               {}
func (s *sinkSession) Logout() error                        { return nil }
func (s *sinkSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *sinkSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	if s.sink.rcpt == nil {
		return nil
	}
	return s.sink.rcpt(to)
}

func (s *sinkSession) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	part, err := multipart.NewReader(m.Body, params["boundary"]).NextPart()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	var body io.Reader = part
	if part.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		body = quotedprintable.NewReader(part)
	}
	if _, err := text.ReadFrom(body); err != nil {
		return err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return err
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.mails = append(s.sink.mails, arrived{s.to, subject, text.String()})
	return nil
}

// invite invites a person and gives the invitation's id.
func invite(t *testing.T, tenant *harness.Tenant, email string) (id string) {
	t.Helper()
	var invitation struct{ ID string }
	tenant.Must(http.MethodPost, "/invitations", map[string]string{
		"email": email,
	}, http.StatusCreated).
		JSON(t, &invitation)
	return invitation.ID
}

var portalLink = regexp.MustCompile(`http://\S+/portal/invitations/\S+`)

// TestInvitationsOutliveCrashes: an invitation that was answered with 201 arrives, once, although
// its mail server is away and the service is killed meanwhile, and its link works.
func TestInvitationsOutliveCrashes(t *testing.T) {
	t.Parallel()
	server := newSink(t, nil)
	s := harness.Start(
		t, "--smtp-url", "smtp://"+server.address, "--mail-from", "Hubs <hubs@example.org>",
	)
	tenant := harness.NewTenant(t, s, "Häuser 日本")
	invite(t, tenant, "ann@example.org")
	harness.Eventually(
		t, time.Minute, "a log line about the server",
		func() bool { return strings.Contains(s.Log(), "no mail can be delivered") },
	)
	s.Kill()
	s.Begin()
	invite(t, tenant, "bob@example.org")
	// While the server is away, one invitation is replaced and one revoked: their mails would only
	// lead astray.
	invite(t, tenant, "dee@example.org")
	tenant.Must(
		http.MethodDelete, "/invitations/"+invite(t, tenant, "eve@example.org"), nil,
		http.StatusNoContent,
	)
	invite(t, tenant, "dee@example.org")
	s.Kill()
	server.open()
	s.Begin()
	for _, address := range []string{"ann@example.org", "bob@example.org"} {
		m := server.await(address)
		if m.subject != "Invitation to Häuser 日本" || !strings.Contains(m.text, "Häuser 日本") {
			t.Errorf("%s got %q: %s", address, m.subject, m.text)
		}
		link := portalLink.FindString(m.text)
		if answer := harness.Open(t, http.MethodGet, link); answer.Status != http.StatusOK {
			t.Errorf("%s opens %s: %d %s", address, link, answer.Status, answer.Body)
		}
		if strings.Contains(s.Log(), link[strings.LastIndexByte(link, '/')+1:]) {
			t.Error("the link's secret is in the log")
		}
	}
	var members struct{ Data []struct{ Email string } }
	tenant.Must(http.MethodGet, "/members", nil, http.StatusOK).JSON(t, &members)
	if len(members.Data) != 3 {
		t.Errorf("the members are %v", members.Data)
	}

	// Nothing is left over that a restart would send again.
	s.Stop()
	s.Begin()
	invite(t, tenant, "cem@example.org")
	server.await("cem@example.org")
	harness.Eventually(
		t, time.Minute, "the queue is empty", func() bool { return waitingMails(t, s) == "0" },
	)
	server.await("ann@example.org")
	server.await("bob@example.org")
	if answer := harness.Open(t, http.MethodGet, portalLink.FindString(server.await("dee@example.org").text)); answer.Status != http.StatusOK {
		t.Errorf("the mail that arrived is not the newest: %d", answer.Status)
	}
	if mails := server.to("eve@example.org"); len(mails) != 0 {
		t.Errorf("a revoked invitation was mailed: %v", mails)
	}
}

func waitingMails(t *testing.T, s *harness.Service) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^hubcloud_outbox_waiting (\S+)$`).
		FindSubmatch(harness.Open(t, http.MethodGet, "http://"+s.Admin+"/metrics").Body)
	if found == nil {
		t.Fatal("there is no hubcloud_outbox_waiting")
	}
	return string(found[1])
}

// TestMailServersAnswers: a recipient that does not exist is told in the log and tried no more; one
// that is not taken yet is tried again; and neither holds up the others.
func TestMailServersAnswers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	tries := map[string]int{}
	server := newSink(t, func(to string) error {
		mu.Lock()
		defer mu.Unlock()
		tries[to]++
		switch {
		case to == "nobody@example.org":
			return &smtp.SMTPError{
				Code:         550,
				EnhancedCode: smtp.EnhancedCode{5, 1, 1},
				Message:      "no such user",
			}
		case to == "grey@example.org" && tries[to] < 3:
			return &smtp.SMTPError{
				Code:         451,
				EnhancedCode: smtp.EnhancedCode{4, 7, 1},
				Message:      "greylisted, come back later",
			}
		}
		return nil
	})
	server.open()
	s := harness.Start(t, "--smtp-url", "smtp://"+server.address)
	tenant := harness.NewTenant(t, s, "Answers")
	for _, address := range []string{"grey@example.org", "nobody@example.org", "ann@example.org"} {
		invite(t, tenant, address)
	}
	server.await("ann@example.org")
	server.await("grey@example.org")
	harness.Eventually(t, time.Minute, "an error line", func() bool {
		return regexp.MustCompile(`level=ERROR msg="a mail is dropped: it is refused" mail_id=\S+ tries=1 .*no such user`).
			MatchString(s.Log())
	})
	mu.Lock()
	defer mu.Unlock()
	if tries["nobody@example.org"] != 1 || tries["grey@example.org"] != 3 ||
		tries["ann@example.org"] != 1 {
		t.Errorf("the server was asked %v", tries)
	}
}
