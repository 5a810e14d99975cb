package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// smtpTimeout bounds the way from the first packet to the greeting done, and then the sending of
// the mail.
const smtpTimeout = 30 * time.Second

// SMTP is a Transport that hands mails to a mail server, each over a connection of its own.
type SMTP struct {
	server Server
	tls    *tls.Config
}

// NewSMTP makes the transport. Certificates are checked against the system's authorities, or those
// of config when it is not nil.
func NewSMTP(server Server, config *tls.Config) *SMTP {
	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	config.ServerName, config.MinVersion = server.Host, tls.VersionTLS12
	return &SMTP{server: server, tls: config}
}

// Plain says that the server may not take every byte.
func (s *SMTP) Plain() bool { return false }

// Send hands one mail over. It is delivered once the server has said yes to its content, whatever
// happens to the connection after that. A recipient or a content that the server refuses for good
// is ErrRefused. ErrUnreachable is everything that is not about this mail: no connection, a
// certificate that does not fit, a wrong password, a sender that the server does not want. So a
// mistake in the service's own configuration costs no mail.
func (s *SMTP) Send(ctx context.Context, _ string, m *gomail.Msg) error {
	line := &line{}
	client, err := s.client(line)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer line.close()                         // the client leaves it open when a greeting fails
	defer context.AfterFunc(ctx, line.close)() // and looks at no context while it talks
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnreachable, s.server, err)
	}
	err = client.SendWithSMTPClient(session, m)
	if m.IsDelivered() {
		// A server that is in a hurry to part has taken it all the same.
		_ = client.CloseWithSMTPClient(session)
		return nil
	}
	return sendError(err)
}

// Greet does what Send does before it sends: it connects, encrypts and logs in as the server's URL
// says, and then parts. It says whether the connection was encrypted. Any failure is
// ErrUnreachable.
func (s *SMTP) Greet(ctx context.Context) (secured bool, err error) {
	line := &line{}
	client, err := s.client(line)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer line.close()
	defer context.AfterFunc(ctx, line.close)()
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return false, fmt.Errorf("%w: %s: %w", ErrUnreachable, s.server, err)
	}
	_, secured = session.TLSConnectionState()
	_ = client.CloseWithSMTPClient(session) // it has greeted us, however it parts
	return secured, nil
}

// client makes a client for one mail.
func (s *SMTP) client(line *line) (*gomail.Client, error) {
	options := []gomail.Option{
		gomail.WithPort(
			s.server.Port,
		), gomail.WithTimeout(smtpTimeout), gomail.WithTLSConfig(s.tls), gomail.WithoutNoop(),
		gomail.WithTLSPolicy(s.policy()),
		gomail.WithDialContextFunc(
			func(ctx context.Context, network, address string) (net.Conn, error) {
				return line.dial(ctx, network, address, s.implicitTLS())
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

// mechanisms are the ways to log in, the best first. Those that tell the password itself are used
// over TLS or to a server on this machine.
func mechanisms() []gomail.SMTPAuthType {
	return []gomail.SMTPAuthType{
		gomail.SMTPAuthSCRAMSHA256PLUS, gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1PLUS,
		gomail.SMTPAuthSCRAMSHA1,
		gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5,
	}
}

// implicitTLS gives how to encrypt a connection from its first byte, nil when that is not asked
// for.
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

// sendError sorts what can go wrong once the server has let us in.
func sendError(err error) error {
	var refused *gomail.SendError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	code, said := refused.ErrorCode(), errors.New(strings.TrimSpace(refused.Error()))
	aboutMail := refused.Reason == gomail.ErrSMTPRcptTo || refused.Reason == gomail.ErrSMTPData ||
		refused.Reason == gomail.ErrSMTPDataClose
	switch {
	case refused.Reason == gomail.ErrGetSender,
		refused.Reason == gomail.ErrGetRcpts,
		refused.Reason == gomail.ErrNoUnencoded:
		return fmt.Errorf("%w: %w", ErrRefused, said)
	case aboutMail && code >= 500:
		return fmt.Errorf("%w: %w", ErrRefused, said)
	case aboutMail && code >= 400 && code != codeShuttingDown:
		return said
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, said)
	}
}

// codeShuttingDown is the server's word that it ends the connection (RFC 5321, section 3.8).
const codeShuttingDown = 421
