package mail

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"hubcloud/domain"
)

//go:embed templates
var templates embed.FS

// maxLine is the most bytes that a line of a mail may have (RFC 5322, section 2.1.1).
const maxLine = 998

// content is what differs between mails.
type content struct {
	to, subject string
	text, html  bytes.Buffer
}

func render(
	to, subject string, text *texttemplate.Template, html *htmltemplate.Template, view any,
) (c content, err error) {
	c.to, c.subject = to, subject
	if err := text.Execute(&c.text, view); err != nil {
		return c, err
	}
	return c, html.Execute(&c.html, view)
}

// compose returns the mail, the same at every call.
func (m *Mailer) compose(q queued) (*gomail.Msg, error) {
	var c content
	err := errors.New("the queued mail is of no known kind")
	switch {
	case q.Invitation != nil:
		c, err = renderInvitation(*q.Invitation)
	case q.SignIn != nil:
		c, err = renderSignIn(*q.SignIn)
	case q.Alarm != nil && len(q.Alarm.Notices) > 0:
		c, err = q.Alarm.render(m.cfg.PublicURL)
	case q.Webhook != nil:
		c, err = q.Webhook.render(m.cfg.PublicURL)
	case q.Key != nil:
		c, err = q.Key.render(m.cfg.PublicURL)
	}
	if err != nil {
		return nil, err
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&m.cfg.From)
	to, err := domain.WireAddress(c.to)
	if err != nil {
		return nil, err
	}
	if err := msg.To(to); err != nil {
		return nil, err
	}
	msg.Subject(literal(c.subject))
	msg.SetDateWithValue(q.QueuedAt)
	msg.SetMessageIDWithValue(fileID(q.id()) + "@" + domainOf(m.cfg.From.Address))
	// RFC 3834: no out-of-office note comes back.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	if q.Alarm != nil {
		q.Alarm.setHeaders(msg, m.cfg.PublicURL, domainOf(m.cfg.From.Address))
	}
	msg.SetBodyString(gomail.TypeTextPlain, crlf(c.text.String()), m.encoding(c.text.Bytes()))
	msg.AddAlternativeString(gomail.TypeTextHTML, crlf(c.html.String()), m.encoding(c.html.Bytes()))
	return msg, nil
}

// encoding leaves a part unencoded where the transport allows it, so that a person or a program
// that reads a stored mail finds the link in one piece.
func (m *Mailer) encoding(part []byte) gomail.PartOption {
	plain := m.cfg.Plain() ||
		bytes.IndexFunc(part, func(r rune) bool { return r > unicode.MaxASCII }) < 0
	for line := range bytes.Lines(part) {
		plain = plain && len(line) < maxLine
	}
	if plain {
		return gomail.WithPartEncoding(gomail.NoEncoding)
	}
	return gomail.WithPartEncoding(gomail.EncodingQP)
}

// literal keeps a subject from being decoded as an encoded word of RFC 2047, and repeated spaces
// from being folded away.
func literal(s string) string {
	return strings.NewReplacer("=?", "=\u200B?", "  ", " \u00A0").Replace(s)
}

// crlf returns a template's output with the line ends of mails. domain.PlainLine has removed line
// ends from the data.
func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

func formatExpiry(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// fileName returns the mail's file name, the same at every try. Names sort by time.
func fileName(q queued) string {
	micros := q.QueuedAt.Nanosecond() / int(time.Microsecond)
	return fmt.Sprintf(
		"%s%06dZ-%s", q.QueuedAt.UTC().Format("20060102T150405"), micros, fileID(q.id()),
	)
}

// fileID replaces the characters of an id that a file system or a Message-ID may not accept.
func fileID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '-'
	}, id)
}
