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

// written is a mail's own part: to whom it goes and what it says, as text and as HTML.
type written struct {
	to, subject string
	text, html  bytes.Buffer
}

func write(
	to, subject string, text *texttemplate.Template, html *htmltemplate.Template, view any,
) (w written, err error) {
	w.to, w.subject = to, subject
	if err := text.Execute(&w.text, view); err != nil {
		return w, err
	}
	return w, html.Execute(&w.html, view)
}

// compose writes a mail, the same at every call.
func (m *Mailer) compose(q queued) (*gomail.Msg, error) {
	var w written
	err := errors.New("the queue holds a mail of no kind")
	switch {
	case q.Invitation != nil:
		w, err = writtenInvitation(*q.Invitation)
	case q.SignIn != nil:
		w, err = writtenSignIn(*q.SignIn)
	}
	if err != nil {
		return nil, err
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&m.cfg.From)
	to, err := domain.WireAddress(w.to)
	if err != nil {
		return nil, err
	}
	if err := msg.To(to); err != nil {
		return nil, err
	}
	msg.Subject(literal(w.subject))
	msg.SetDateWithValue(q.QueuedAt)
	msg.SetMessageIDWithValue(fileID(q.id()) + "@" + domainOf(m.cfg.From.Address))
	// RFC 3834: no out-of-office note comes back.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(gomail.TypeTextPlain, crlf(w.text.String()), m.encoding(w.text.Bytes()))
	msg.AddAlternativeString(gomail.TypeTextHTML, crlf(w.html.String()), m.encoding(w.html.Bytes()))
	return msg, nil
}

// encoding leaves a part as it is where that is allowed, so that a person or a program that looks
// at a stored mail sees the link whole.
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

// crlf ends lines as mails do. Templates end theirs in LF, and nothing that is filled in has a line
// end (displayed).
func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// fileName names a mail, the same at every try, so that names sort by time.
func fileName(q queued) string {
	return q.QueuedAt.UTC().
		Format("20060102T150405") +
		fmt.Sprintf("%06d", q.QueuedAt.Nanosecond()/int(time.Microsecond)) + "Z-" + fileID(q.id())
}

// fileID keeps of an id what any file system and any Message-ID take.
func fileID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '-'
	}, id)
}
