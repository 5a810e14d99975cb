// Package mailserver is an SMTP server for tests. It can start late, reject mail and ask for TLS
// and a login.
package mailserver

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"hubcloud/streams/streamstest"
)

// User is the one user who can log in.
const User = "ann"

// Options are what a server offers and how it answers.
type Options struct {
	// Address is where the server listens. Defaults to a free port of this machine.
	Address string
	// ImplicitTLS speaks TLS from the first byte, StartTLS offers STARTTLS.
	ImplicitTLS, StartTLS bool
	// Password makes the server ask User for a login.
	Password string
	// PlaintextLogin offers the login also without TLS.
	PlaintextLogin bool
	// Answer returns the error with which a step ends, nil for success. nil answers every step with
	// success.
	Answer func(step Step, to string) error
}

// Step is a step of a delivery.
type Step string

// The steps of a delivery. The recipient is known from StepRcpt on.
const (
	StepMail Step = "MAIL"
	StepRcpt Step = "RCPT"
	StepData Step = "DATA"
)

// Reject returns an answer with an SMTP code, such as 550, and an enhanced code, such as {5, 1, 1}.
func Reject(code int, enhanced [3]int, message string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: message}
}

// Server is a running mail server. It ends with the test.
type Server struct {
	Address string
	// Roots hold the server's certificate.
	Roots *x509.CertPool

	options Options
	mu      sync.Mutex
	mails   []Mail
	logins  int
}

// Start starts a mail server that ends with the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	trusted := httptest.NewTLSServer(nil) // has a certificate for this machine, signed by itself
	trusted.Close()
	s := &Server{Roots: x509.NewCertPool(), options: options}
	s.Roots.AddCert(trusted.Certificate())
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		_, secured := c.TLSConnectionState()
		return &session{server: s, secured: secured}, nil
	}))
	server.Domain, server.AllowInsecureAuth = "localhost", options.PlaintextLogin
	server.ErrorLog = log.New(io.Discard, "", 0)
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", options.Address)
	streamstest.Must(t, err)
	s.Address = listener.Addr().String()
	config := &tls.Config{Certificates: trusted.TLS.Certificates}
	switch {
	case options.ImplicitTLS:
		listener = tls.NewListener(listener, config)
	case options.StartTLS:
		server.TLSConfig = config
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends with Close
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return s
}

// Mails returns the mails that arrived.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// MailsTo returns the mails that arrived for a recipient.
func (s *Server) MailsTo(address string) []Mail {
	return slices.DeleteFunc(s.Mails(), func(m Mail) bool { return m.To != address })
}

// Logins returns the number of successful logins.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// session is one connection.
type session struct {
	server   *Server
	secured  bool
	loggedIn bool
	mail     Mail
}

func (s *session) answer(step Step) error {
	if s.server.options.Answer == nil {
		return nil
	}
	return s.server.options.Answer(step, s.mail.To)
}

func (s *session) AuthMechanisms() []string {
	if s.server.options.Password == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != User || password != s.server.options.Password {
			return smtp.ErrAuthFailed
		}
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		s.server.logins++
		s.loggedIn = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.options.Password != "" && !s.loggedIn {
		return smtp.ErrAuthRequired
	}
	s.mail = Mail{From: from, Secured: s.secured}
	return s.answer(StepMail)
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.To = to
	return s.answer(StepRcpt)
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.answer(StepData); err != nil {
		return err
	}
	s.mail.Raw = string(raw)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, s.mail)
	return nil
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }
