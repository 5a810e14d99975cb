package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

// smtpTimeout bounds connecting and logging in, and after that sending the mail.
const smtpTimeout = 30 * time.Second

// SMTP is a Transport that hands mails to a mail server, each over a connection of its own.
type SMTP struct {
	server Server
	tls    *tls.Config
}

// NewSMTP returns a transport to a mail server. It checks the server's certificate with config; nil
// means the system's authorities.
func NewSMTP(server Server, config *tls.Config) *SMTP {
	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	config.ServerName, config.MinVersion = server.Host, tls.VersionTLS12
	return &SMTP{server: server, tls: config}
}

// Plain returns false: the server may not accept every byte.
func (s *SMTP) Plain() bool { return false }

// Send delivers one mail. The mail is delivered once the server has accepted its content, whatever
// happens to the connection after that. A recipient or a content that the server rejects
// permanently is ErrRejected. Everything that is not about this mail is ErrUnreachable: no
// connection, a wrong certificate, a wrong password, a rejected sender. So a mistake in the
// service's own configuration loses no mail.
func (s *SMTP) Send(ctx context.Context, _ string, m *gomail.Msg) error {
	c := &conn{}
	client, err := s.client(c)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnreachable, s.server, err)
	}
	session.SkipSMTPUTF8(!needsUTF8(m))
	err = client.SendWithSMTPClient(session, m)
	if m.IsDelivered() {
		_ = client.CloseWithSMTPClient(session) // the server has the mail already
		return nil
	}
	return sendError(err)
}

// needsUTF8 reports whether a mail can only be sent with SMTPUTF8: if an address has a character
// beyond ASCII. Some servers return a mail that was handed over with SMTPUTF8 when the next server
// does not offer it, whether the mail needs it or not.
func needsUTF8(m *gomail.Msg) bool {
	sender, _ := m.GetSender(false) // without a sender or recipients, sending fails
	recipients, _ := m.GetRecipients()
	return strings.ContainsFunc(
		sender+strings.Join(recipients, ""), func(r rune) bool { return r > unicode.MaxASCII },
	)
}

// Greet connects, encrypts and logs in as Send does, and then disconnects. It returns whether the
// connection was encrypted. Any failure is ErrUnreachable.
func (s *SMTP) Greet(ctx context.Context) (secured bool, err error) {
	c := &conn{}
	client, err := s.client(c)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return false, fmt.Errorf("%w: %s: %w", ErrUnreachable, s.server, err)
	}
	_, secured = session.TLSConnectionState()
	_ = client.CloseWithSMTPClient(session) // the login succeeded, whatever happens now
	return secured, nil
}

// client returns a client for one mail.
func (s *SMTP) client(c *conn) (*gomail.Client, error) {
	options := []gomail.Option{
		gomail.WithPort(s.server.Port), gomail.WithTimeout(smtpTimeout),
		gomail.WithTLSConfig(s.tls), gomail.WithTLSPolicy(s.policy()), gomail.WithoutNoop(),
		gomail.WithDialContextFunc(
			func(ctx context.Context, network, address string) (net.Conn, error) {
				return c.dial(ctx, network, address, s.implicitTLS())
			},
		),
	}
	if s.server.User != "" {
		options = append(
			options, gomail.WithOpportunisticSMTPAuth(mechanisms()...),
			gomail.WithUsername(s.server.User), gomail.WithPassword(s.server.password),
		)
	}
	return gomail.NewClient(s.server.Host, options...)
}

// mechanisms returns the mechanisms to log in with, the best first. The SMTP client uses those that
// send the password only over TLS or to this machine.
func mechanisms() []gomail.SMTPAuthType {
	return []gomail.SMTPAuthType{
		gomail.SMTPAuthSCRAMSHA256PLUS, gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1PLUS,
		gomail.SMTPAuthSCRAMSHA1,
		gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5,
	}
}

// implicitTLS returns the configuration to encrypt with from the first byte; nil if the server does
// not do that.
func (s *SMTP) implicitTLS() *tls.Config {
	if s.server.TLS == TLSImplicit {
		return s.tls
	}
	return nil
}

func (s *SMTP) policy() gomail.TLSPolicy {
	if s.server.TLS == TLSRequired {
		return gomail.TLSMandatory
	}
	return gomail.TLSOpportunistic
}

// sendError classifies an error after the login.
func sendError(err error) error {
	var failed *gomail.SendError
	if !errors.As(err, &failed) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	code, cause := failed.ErrorCode(), errors.New(strings.TrimSpace(failed.Error()))
	aboutMail := failed.Reason == gomail.ErrSMTPRcptTo || failed.Reason == gomail.ErrSMTPData ||
		failed.Reason == gomail.ErrSMTPDataClose
	switch {
	case failed.Reason == gomail.ErrGetSender,
		failed.Reason == gomail.ErrGetRcpts,
		failed.Reason == gomail.ErrNoUnencoded:
		return fmt.Errorf("%w: %w", ErrRejected, cause)
	case aboutMail && code >= 500:
		return fmt.Errorf("%w: %w", ErrRejected, cause)
	case aboutMail && code >= 400 && code != codeShuttingDown:
		return cause
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, cause)
	}
}

// codeShuttingDown is the reply of a server that closes the connection (RFC 5321, section 3.8).
const codeShuttingDown = 421
