package mail_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	netmail "net/mail"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/mail"
	"hubcloud/streams/streamstest"
	"hubcloud/test/mailserver"
)

const (
	publicURL = "https://hubs.example.org"
	token     = "AaH8_O8cfTGDFqYDlZI-vAGh"
	link      = publicURL + "/portal/invitations/" + token
)

// queue keeps what a mailer puts into its durable queue.
type queue struct{ contents [][]byte }

func (q *queue) Put(_ context.Context, e mail.Envelope) error {
	q.contents = append(q.contents, e.Content)
	return nil
}

// HasSpace returns nil.
func (*queue) HasSpace(context.Context, string, string) error { return nil }

// deliver composes an invitation by an organization and delivers it to a server.
func deliver(
	ctx context.Context, t *testing.T, to mail.Server, roots *x509.CertPool, org string,
) error {
	t.Helper()
	return deliverTo(ctx, t, to, roots, org, "ann@example.org")
}

// deliverTo is deliver for a recipient.
func deliverTo(
	ctx context.Context, t *testing.T, to mail.Server, roots *x509.CertPool, org, recipient string,
) error {
	t.Helper()
	q := &queue{}
	m, err := mail.New(mail.Config{
		From:      netmail.Address{Name: "Hübe", Address: "hubs@example.org"},
		PublicURL: publicURL,
		Queue:     q,
		Transport: mail.NewSMTP(to, &tls.Config{RootCAs: roots}),
		Now:       time.Now,
	})
	streamstest.Must(t, err)
	streamstest.Must(t, m.SendInvitation(t.Context(), domain.InvitationMail{
		Invitation: domain.Invitation{
			ID: "01a1fcfc-f161-7b6e-8ddf-bdd9037f06ca", Email: recipient,
			Role: domain.RoleAdmin, ExpiresAt: time.Now().Add(7 * 24 * time.Hour),
		},
		OrgName: org, Token: token,
	}))
	return m.Deliver(ctx, q.contents[0])
}

// parse parses the URL of a mail server, in which HOST stands for an address.
func parse(t *testing.T, url, address string) mail.Server {
	t.Helper()
	server, err := mail.ParseServer(strings.Replace(url, "HOST", address, 1))
	streamstest.Must(t, err)
	return server
}

// send delivers an invitation to a server by a URL in which HOST stands for its address.
func send(t *testing.T, s *mailserver.Server, url, org string) error {
	t.Helper()
	return deliver(t.Context(), t, parse(t, url, s.Address), s.Roots, org)
}

// TestSMTP greets and delivers over every kind of connection. A greeting connects and logs in and
// sends no mail. The mail that arrives is the mail that was composed.
func TestSMTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options mailserver.Options
		url     string
		secured bool
	}{
		"TLS from the first byte": {
			mailserver.Options{ImplicitTLS: true}, "smtps://HOST", true,
		},
		"TLS from the first byte, login": {
			mailserver.Options{ImplicitTLS: true, Password: "p/w:d"},
			"smtps://ann:p%2Fw%3Ad@HOST", true,
		},
		"STARTTLS": {mailserver.Options{StartTLS: true}, "smtp://HOST", true},
		"STARTTLS, login": {
			mailserver.Options{StartTLS: true, Password: "secret"}, "smtp://ann:secret@HOST", true,
		},
		"plaintext to this machine": {mailserver.Options{}, "smtp://HOST", false},
		"plaintext to this machine, login": {
			mailserver.Options{Password: "secret", PlaintextLogin: true},
			"smtp://ann:secret@HOST", false,
		},
		"STARTTLS where it is optional": {
			mailserver.Options{StartTLS: true, Password: "secret"},
			"smtp://ann:secret@HOST?tls=optional", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mailserver.Start(t, c.options)
			server := parse(t, c.url, s.Address)
			secured, err := mail.NewSMTP(server, &tls.Config{RootCAs: s.Roots}).Greet(t.Context())
			if secured != c.secured || err != nil || len(s.Mails()) != 0 {
				t.Errorf("greeting: got secured %t, %v, want %t and no mail", secured, err, c.secured)
			}
			without, err := mail.ParseServer(server.WithoutLogin())
			if err != nil || without.User != "" || without.TLS != server.TLS {
				t.Errorf("%s without its login: got %+v, %v", server, without, err)
			}
			orgs := []string{"Acme", "Häuser & Söhne 日本 👩‍👩‍👧"}
			for _, org := range orgs {
				streamstest.Must(t, send(t, s, c.url, org))
			}
			mails := s.Mails()
			if len(mails) != len(orgs) {
				t.Fatalf("got %d mails, want %d", len(mails), len(orgs))
			}
			for i, org := range orgs {
				m := mails[i]
				if m.From != "hubs@example.org" || m.To != "ann@example.org" ||
					m.Secured != c.secured {
					t.Errorf(
						"got a mail from %s to %s, secured %t; want hubs@example.org, "+
							"ann@example.org, %t", m.From, m.To, m.Secured, c.secured,
					)
				}
				subject, text := m.Read(t)
				if want := "Invitation to " + org; subject != want {
					t.Errorf("got the subject %q, want %q", subject, want)
				}
				for _, want := range []string{org, link} {
					if !strings.Contains(text, "\n"+want+"\n") {
						t.Errorf("got the text %q, want a line %q", text, want)
					}
				}
				if strings.IndexFunc(m.Raw, func(r rune) bool { return r > 127 }) >= 0 {
					t.Errorf("got non-ASCII bytes in the mail: %q", m.Raw)
				}
			}
		})
	}
}

// TestServerAnswers checks which answers of the server reject the mail, postpone it, or postpone
// all mails.
func TestServerAnswers(t *testing.T) {
	t.Parallel()
	later := errors.New("later")
	for name, c := range map[string]struct {
		step  mailserver.Step
		code  int
		class int
		want  error
	}{
		"no such user":         {mailserver.StepRcpt, 550, 5, mail.ErrRejected},
		"mailbox busy":         {mailserver.StepRcpt, 450, 4, later},
		"greylisted":           {mailserver.StepRcpt, 451, 4, later},
		"content rejected":     {mailserver.StepData, 554, 5, mail.ErrRejected},
		"disk full":            {mailserver.StepData, 452, 4, later},
		"sender rejected":      {mailserver.StepMail, 550, 5, mail.ErrUnreachable},
		"too many from us":     {mailserver.StepMail, 451, 4, mail.ErrUnreachable},
		"server shutting down": {mailserver.StepRcpt, 421, 4, mail.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mailserver.Start(t, mailserver.Options{
				Answer: func(step mailserver.Step, _ string) error {
					if step != c.step {
						return nil
					}
					return mailserver.Reject(c.code, [3]int{c.class, 1, 1}, "because")
				},
			})
			err := send(t, s, "smtp://HOST", "Acme")
			if err == nil {
				t.Fatalf("got no error, want %v", c.want)
			}
			for _, sentinel := range []error{mail.ErrRejected, mail.ErrUnreachable} {
				if got, want := errors.Is(err, sentinel), c.want == sentinel; got != want {
					t.Errorf("%v: is %q: got %t, want %t", err, sentinel, got, want)
				}
			}
			if strings.Contains(err.Error(), "AaH8_O8c") {
				t.Errorf("the error contains the link: %v", err)
			}
			if !strings.Contains(err.Error(), "because") {
				t.Errorf("the error does not contain the server's answer: %v", err)
			}
			if got := len(s.Mails()); got != 0 {
				t.Errorf("got %d mails, want none", got)
			}
		})
	}
}

// TestUnreachable checks that a broken connection or a failed login does not count as a rejection
// of the mail, and that the error does not contain the password.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, s *mailserver.Server, err error) {
		t.Helper()
		if !errors.Is(err, mail.ErrUnreachable) || errors.Is(err, mail.ErrRejected) {
			t.Errorf("got %v, want ErrUnreachable", err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error contains the password: %v", err)
		}
		if logins, mails := s.Logins(), len(s.Mails()); logins != 0 || mails != 0 {
			t.Errorf("got %d logins and %d mails, want none", logins, mails)
		}
	}
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		s := mailserver.Start(t, mailserver.Options{ImplicitTLS: true, Password: "other"})
		check(t, s, send(t, s, "smtps://ann:secret@HOST", "Acme"))
		server := parse(t, "smtps://ann:secret@HOST", s.Address)
		_, err := mail.NewSMTP(server, &tls.Config{RootCAs: s.Roots}).Greet(t.Context())
		check(t, s, err)
	})
	t.Run("no login", func(t *testing.T) {
		t.Parallel()
		s := mailserver.Start(t, mailserver.Options{ImplicitTLS: true, Password: "other"})
		check(t, s, send(t, s, "smtps://HOST", "Acme"))
	})
	t.Run("login that is not offered", func(t *testing.T) {
		t.Parallel()
		s := mailserver.Start(t, mailserver.Options{ImplicitTLS: true})
		check(t, s, send(t, s, "smtps://ann:secret@HOST", "Acme"))
	})
	t.Run("untrusted certificate", func(t *testing.T) {
		t.Parallel()
		for url, options := range map[string]mailserver.Options{
			"smtps://ann:secret@HOST": {ImplicitTLS: true, Password: "secret"},
			"smtp://ann:secret@HOST":  {StartTLS: true, Password: "secret"},
		} {
			s := mailserver.Start(t, options)
			s.Roots = x509.NewCertPool()
			check(t, s, send(t, s, url, "Acme"))
		}
	})
	t.Run("STARTTLS required and not offered", func(t *testing.T) {
		t.Parallel()
		s := mailserver.Start(t, mailserver.Options{Password: "secret", PlaintextLogin: true})
		server := parse(t, "smtp://ann:secret@HOST", s.Address)
		server.TLS = mail.TLSRequired // as for a server on another machine
		check(t, s, deliver(t.Context(), t, server, nil, "Acme"))
	})
	t.Run("connection refused", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		streamstest.Must(t, err)
		s := &mailserver.Server{Address: listener.Addr().String()}
		listener.Close()
		check(t, s, send(t, s, "smtp://HOST", "Acme"))
	})
}

// TestSilentServer checks that a delivery to a server that does not answer ends with the caller's
// context and closes its connection.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			closed <- err
			return
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "220 hello\r\n"); err != nil {
			closed <- err
			return
		}
		cancel()
		_, err = io.Copy(io.Discard, conn)
		closed <- err
	}()
	began := time.Now()
	server := parse(t, "smtp://HOST", listener.Addr().String())
	if err := deliver(ctx, t, server, nil, "Acme"); !errors.Is(err, mail.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the delivery took %s, want less than 30s", took)
	}
	<-closed
}

// TestConnectionLostAfterData checks that a mail whose content the server accepted counts as
// delivered although the server then closes the connection.
func TestConnectionLostAfterData(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	defer listener.Close()
	served := make(chan error, 1)
	go func() {
		_, err := acceptAndClose(listener, "250 localhost\r\n")
		served <- err
	}()
	server := parse(t, "smtp://HOST", listener.Addr().String())
	if err := deliver(t.Context(), t, server, nil, "Acme"); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestSMTPUTF8: every mail was handed over with SMTPUTF8 to a server that offers it, which then
// could not pass it on to a server that does not.
func TestSMTPUTF8(t *testing.T) {
	t.Parallel()
	for recipient, want := range map[string]bool{
		"ann@example.org": false, "ann@bücher.example": false, "änn@example.org": true,
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		streamstest.Must(t, err)
		defer listener.Close()
		commands := make(chan string, 1)
		go func() {
			command, err := acceptAndClose(
				listener, "250-localhost\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n",
			)
			if err != nil {
				t.Error(err)
			}
			commands <- command
		}()
		server := parse(t, "smtp://HOST", listener.Addr().String())
		if err := deliverTo(t.Context(), t, server, nil, "Söhne", recipient); err != nil {
			t.Error(err)
		}
		if command := <-commands; strings.Contains(command, "SMTPUTF8") != want {
			t.Errorf("mail to %s: got %q, want SMTPUTF8 %t", recipient, command, want)
		}
	}
}

// acceptAndClose accepts one mail on one connection and closes the connection at once. ehlo is what
// it answers to EHLO. It returns the command MAIL that came.
func acceptAndClose(listener net.Listener, ehlo string) (mail string, err error) {
	conn, err := listener.Accept()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	lines := textproto.NewReader(bufio.NewReader(conn))
	if _, err := io.WriteString(conn, "220 hello\r\n"); err != nil {
		return "", err
	}
	for _, step := range []struct{ command, answer string }{
		{"EHLO", ehlo}, {"MAIL", "250 ok\r\n"}, {"RCPT", "250 ok\r\n"},
		{"DATA", "354 go on\r\n"}, {".", "250 queued\r\n"},
	} {
		for line := ""; !strings.HasPrefix(line, step.command) || step.command == "." && line != "."; {
			if line, err = lines.ReadLine(); err != nil {
				return mail, err
			}
			if step.command == "MAIL" {
				mail = line
			}
		}
		if _, err := io.WriteString(conn, step.answer); err != nil {
			return mail, err
		}
	}
	return mail, nil
}
