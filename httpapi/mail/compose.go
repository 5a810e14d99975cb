package mail

import (
	"bytes"
	"embed"
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

var (
	textTemplates = texttemplate.Must(texttemplate.ParseFS(templates, "templates/*.txt"))
	htmlTemplates = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/*.html"))
)

// content is what differs between mails.
type content struct {
	subject    string
	text, html bytes.Buffer
}

// render returns the mail of a template.
func render(subject, template string, view any) (c content, err error) {
	c.subject = subject
	if err := textTemplates.ExecuteTemplate(&c.text, template+".txt", view); err != nil {
		return c, err
	}
	return c, htmlTemplates.ExecuteTemplate(&c.html, template+".html", view)
}

// compose returns the mail, the same at every call.
func (m *Mailer) compose(q queued, recipient string) (*gomail.Msg, error) {
	c, err := q.kind().render(m.cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&m.cfg.From)
	to, err := domain.WireAddress(recipient)
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
