package mail_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"hubcloud/httpapi/mail"
)

// server is a mail server that a test can make refuse things.
type server struct {
	address string
	roots   *x509.CertPool

	mu       sync.Mutex
	mails    []received
	logins   int
	sessions int
	// answers says how a step ends, by its name: mail, rcpt, data; nil: well.
	answers map[string]error
}

type received struct {
	from, to, raw string
	secured       bool
}

// serverOptions say what a server offers.
type serverOptions struct {
	implicit, startTLS bool
	// password asks for a login.
	password string
	insecure bool // logins also in the clear
	answers  map[string]error
}

func startServer(t *testing.T, options serverOptions) *server {
	t.Helper()
	certificate, roots := newCertificate(t)
	s := &server{roots: roots, answers: options.answers}
	running := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sessions++
		_, secured := c.TLSConnectionState()
		return &session{server: s, password: options.password, secured: secured}, nil
	}))
	running.Domain, running.AllowInsecureAuth = "localhost", options.insecure
	running.ErrorLog = log.New(io.Discard, "", 0)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	switch {
	case options.implicit:
		listener = tls.NewListener(listener, config)
	case options.startTLS:
		running.TLSConfig = config
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = running.Serve(listener) })
	t.Cleanup(func() {
		running.Close()
		serving.Wait()
	})
	return s
}

func newCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(
			1,
		), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func (s *server) received() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.mails...)
}

// session is one connection's.
type session struct {
	*server
	password string
	secured  bool
	in       bool
	mail     received
}

func (s *session) AuthMechanisms() []string {
	if s.password == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "ann" || password != s.password {
			return smtp.ErrAuthFailed
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.logins++
		s.in = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.password != "" && !s.in {
		return smtp.ErrAuthRequired
	}
	s.mail = received{from: from, secured: s.secured}
	return s.answers["mail"]
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = to
	return s.answers["rcpt"]
}

func (s *session) Data(r io.Reader) error {
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(r); err != nil {
		return err
	}
	s.mail.raw = raw.String()
	if err := s.answers["data"]; err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, s.mail)
	return nil
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

// sendTo sends one invitation to a server by a URL in which HOST stands for its address.
func sendTo(ctx context.Context, t *testing.T, s *server, url, orgName string) error {
	t.Helper()
	parsed, err := mail.ParseServer(strings.Replace(url, "HOST", s.address, 1))
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	m := mailer(q, mail.NewSMTP(parsed, &tls.Config{RootCAs: s.roots}))
	if err := m.SendInvitation(t.Context(), invitation(orgName)); err != nil {
		t.Fatal(err)
	}
	return m.Deliver(ctx, q.contents[0])
}

// TestSMTP delivers over every kind of connection, and what arrives is what was written.
func TestSMTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options serverOptions
		url     string
		secured bool
	}{
		"TLS from the first byte": {serverOptions{implicit: true}, "smtps://HOST", true},
		"TLS from the first byte, login": {
			serverOptions{implicit: true, password: "p/w:d"}, "smtps://ann:p%2Fw%3Ad@HOST", true,
		},
		"STARTTLS": {serverOptions{startTLS: true}, "smtp://HOST", true},
		"STARTTLS, login": {
			serverOptions{startTLS: true, password: "secret"}, "smtp://ann:secret@HOST", true,
		},
		"in the clear to this machine": {serverOptions{}, "smtp://HOST", false},
		"in the clear, login, this machine": {
			serverOptions{password: "secret", insecure: true}, "smtp://ann:secret@HOST", false,
		},
		"STARTTLS where it is not needed": {
			serverOptions{startTLS: true, password: "secret"},
			"smtp://ann:secret@HOST?tls=optional", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, c.options)
			for _, org := range []string{"Acme", "Häuser & Söhne 日本 👩‍👩‍👧"} {
				if err := sendTo(t.Context(), t, s, c.url, org); err != nil {
					t.Fatal(err)
				}
			}
			got := s.received()
			if len(got) != 2 {
				t.Fatalf("%d mails arrived", len(got))
			}
			for i, org := range []string{"Acme", "Häuser & Söhne 日本 👩‍👩‍👧"} {
				if got[i].from != "hubs@example.org" || got[i].to != "ann@example.org" ||
					got[i].secured != c.secured {
					t.Errorf("%+v", got[i])
				}
				m := readMail(t, got[i].raw)
				if m.subject != "Invitation to "+org || !strings.Contains(m.text, "\n"+org+"\n") ||
					!strings.Contains(m.text, "\n"+link+"\n") {
					t.Errorf("%q: %s", m.subject, m.text)
				}
				if strings.IndexFunc(got[i].raw, func(r rune) bool { return r > 127 }) >= 0 {
					t.Error("the mail is not all ASCII on its way")
				}
			}
		})
	}
}

// TestServersAnswers: what the server says decides whether the mail, all mails or nothing is to be
// tried again.
func TestServersAnswers(t *testing.T) {
	t.Parallel()
	answer := func(code int, class int) error {
		return &smtp.SMTPError{
			Code:         code,
			EnhancedCode: smtp.EnhancedCode{class, 1, 1},
			Message:      "because",
		}
	}
	later := errors.New("later")
	for name, c := range map[string]struct {
		step string
		err  error
		want error
	}{
		"no such user":         {"rcpt", answer(550, 5), mail.ErrRefused},
		"mailbox busy":         {"rcpt", answer(450, 4), later},
		"greylisted":           {"rcpt", answer(451, 4), later},
		"content refused":      {"data", answer(554, 5), mail.ErrRefused},
		"disk full":            {"data", answer(452, 4), later},
		"sender not welcome":   {"mail", answer(550, 5), mail.ErrUnreachable},
		"too many from us":     {"mail", answer(451, 4), mail.ErrUnreachable},
		"server shutting down": {"rcpt", answer(421, 4), mail.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, serverOptions{answers: map[string]error{c.step: c.err}})
			err := sendTo(t.Context(), t, s, "smtp://HOST", "Acme")
			refused, unreachable := errors.Is(err, mail.ErrRefused), errors.Is(err, mail.ErrUnreachable)
			if err == nil || refused != (c.want == mail.ErrRefused) ||
				unreachable != (c.want == mail.ErrUnreachable) {
				t.Errorf("%v", err)
			}
			if err != nil &&
				(strings.Contains(err.Error(), "AaH8_O8c") || !strings.Contains(err.Error(), "because")) {
				t.Errorf("told as %v", err)
			}
			if n := len(s.received()); n != 0 {
				t.Errorf("%d mails arrived", n)
			}
		})
	}
}

// TestWayIsClosed: what is wrong with the connection or the login is no mail's fault, and no
// password is told.
func TestWayIsClosed(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, s *server, err error) {
		t.Helper()
		if !errors.Is(err, mail.ErrUnreachable) || errors.Is(err, mail.ErrRefused) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
		if s.mu.Lock(); s.logins != 0 || len(s.mails) != 0 {
			t.Errorf("%d logins, %d mails", s.logins, len(s.mails))
		}
		s.mu.Unlock()
	}
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, serverOptions{implicit: true, password: "other"})
		check(t, s, sendTo(t.Context(), t, s, "smtps://ann:secret@HOST", "Acme"))
	})
	t.Run("no login", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, serverOptions{implicit: true, password: "other"})
		check(t, s, sendTo(t.Context(), t, s, "smtps://HOST", "Acme"))
	})
	t.Run("login that is not offered", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, serverOptions{implicit: true})
		check(t, s, sendTo(t.Context(), t, s, "smtps://ann:secret@HOST", "Acme"))
	})
	t.Run("certificate of a stranger", func(t *testing.T) {
		t.Parallel()
		for _, options := range []serverOptions{
			{implicit: true, password: "secret"}, {startTLS: true, password: "secret"},
		} {
			s := startServer(t, options)
			s.roots = x509.NewCertPool()
			url := "smtp://ann:secret@HOST"
			if options.implicit {
				url = "smtps://ann:secret@HOST"
			}
			check(t, s, sendTo(t.Context(), t, s, url, "Acme"))
		}
	})
	t.Run("STARTTLS that is needed and not offered", func(t *testing.T) {
		t.Parallel()
		s := startServer(t, serverOptions{password: "secret", insecure: true})
		parsed, err := mail.ParseServer("smtp://ann:secret@" + s.address)
		if err != nil {
			t.Fatal(err)
		}
		parsed.TLS = mail.TLSRequired // as for any server that is not on this machine
		q := &queue{}
		m := mailer(q, mail.NewSMTP(parsed, nil))
		if err := m.SendInvitation(t.Context(), invitation("Acme")); err != nil {
			t.Fatal(err)
		}
		check(t, s, m.Deliver(t.Context(), q.contents[0]))
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &server{address: listener.Addr().String()}
		listener.Close()
		check(t, s, sendTo(t.Context(), t, s, "smtp://HOST", "Acme"))
	})
}

// TestSilentServer: a server that says nothing is left as soon as the caller wants, and no
// connection is left behind.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := sendTo(ctx, t, &server{
		address: listener.Addr().String(),
	}, "smtp://HOST", "Acme"); !errors.Is(err, mail.ErrUnreachable) {
		t.Error(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	<-closed
}

// TestServerThatPartsInAHurry: once it has said yes to the content the mail is delivered, also when
// it says nothing more.
func TestServerThatPartsInAHurry(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() { served <- partInAHurry(listener) }()
	if err := sendTo(t.Context(), t, &server{
		address: listener.Addr().String(),
	}, "smtp://HOST", "Acme"); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func partInAHurry(listener net.Listener) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	lines := newLineReader(conn)
	if _, err := io.WriteString(conn, "220 hello\r\n"); err != nil {
		return err
	}
	for _, step := range []struct{ command, answer string }{
		{"EHLO", "250 localhost\r\n"}, {"MAIL", "250 ok\r\n"}, {"RCPT", "250 ok\r\n"},
		{"DATA", "354 go on\r\n"}, {".", "250 queued\r\n"},
	} {
		for line := ""; !strings.HasPrefix(line, step.command) || step.command == "." && line != "."; {
			if line, err = lines(); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(conn, step.answer); err != nil {
			return err
		}
	}
	return nil
}

func newLineReader(r io.Reader) func() (string, error) {
	return func() (string, error) {
		var line []byte
		for one := make([]byte, 1); ; {
			if _, err := io.ReadFull(r, one); err != nil {
				return "", err
			}
			if one[0] == '\n' {
				return strings.TrimSuffix(string(line), "\r"), nil
			}
			line = append(line, one[0])
		}
	}
}
