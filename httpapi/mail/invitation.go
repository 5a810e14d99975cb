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

	"golang.org/x/net/idna"

	gomail "github.com/wneessen/go-mail"

	"hubcloud/domain"
)

//go:embed templates
var templates embed.FS

// invitationText and invitationHTML say the same.
var (
	invitationText = texttemplate.Must(texttemplate.ParseFS(templates, "templates/invitation.txt"))
	invitationHTML = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/invitation.html"))
)

// invitationView is what the templates show.
type invitationView struct {
	Org     string
	Role    string
	To      string
	Link    string
	Expires string
}

// maxLine is the most bytes that a line of a mail may have (RFC 5322, section 2.1.1).
const maxLine = 998

// composeInvitation writes the mail, the same at every call.
func (m *Mailer) composeInvitation(q queued) (*gomail.Msg, error) {
	inv := q.Invitation
	view := invitationView{
		Org: displayed(inv.OrgName), Role: roleWords(inv.Role), To: displayed(inv.To), Link: inv.Link,
		Expires: inv.ExpiresAt.UTC().Format("2 January 2006, 15:04 UTC"),
	}
	var text, html bytes.Buffer
	if err := invitationText.Execute(&text, view); err != nil {
		return nil, err
	}
	if err := invitationHTML.Execute(&html, view); err != nil {
		return nil, err
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&m.cfg.From)
	to, err := wireAddress(inv.To)
	if err != nil {
		return nil, err
	}
	if err := msg.To(to); err != nil {
		return nil, err
	}
	msg.Subject(literal("Invitation to " + view.Org))
	msg.SetDateWithValue(q.QueuedAt)
	msg.SetMessageIDWithValue(fileID(inv.ID) + "@" + domainOf(m.cfg.From.Address))
	// RFC 3834: no out-of-office note comes back.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(gomail.TypeTextPlain, crlf(text.String()), m.encoding(text.Bytes()))
	msg.AddAlternativeString(gomail.TypeTextHTML, crlf(html.String()), m.encoding(html.Bytes()))
	return msg, nil
}

// encoding leaves a part as it is where that is allowed, so that a person or a program that looks at a stored mail sees the link whole.
func (m *Mailer) encoding(part []byte) gomail.PartOption {
	plain := m.cfg.Plain() || bytes.IndexFunc(part, func(r rune) bool { return r > unicode.MaxASCII }) < 0
	for line := range bytes.Lines(part) {
		plain = plain && len(line) < maxLine
	}
	if plain {
		return gomail.WithPartEncoding(gomail.NoEncoding)
	}
	return gomail.WithPartEncoding(gomail.EncodingQP)
}

// crlf ends lines as mails do. Templates end theirs in LF, and nothing that is filled in has a line end (displayed).
func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// displayed gives a text that somebody chose as it is shown: on one line, and without characters that change the direction of what stands
// around them.
func displayed(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.TrimSpace(s)
}

// literal keeps a text from being read as an encoded word of RFC 2047 that it only looks like, and spaces from being folded away. What is not
// ASCII is encoded as a whole: one character in between that nobody sees, or that looks like a space, is enough.
func literal(s string) string {
	return strings.NewReplacer("=?", "=\u200B?", "  ", " \u00A0").Replace(s)
}

func roleWords(role domain.Role) string {
	if role == domain.RoleAdmin {
		return "an admin"
	}
	return "a member"
}

// wireAddress gives an address as it is sent: with the domain in ASCII (RFC 5891), which servers without SMTPUTF8 take too.
func wireAddress(address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", fmt.Errorf("%q is no address", address)
	}
	host, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		host = address[at+1:] // a literal such as [192.0.2.1]
	}
	return address[:at+1] + host, nil
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// fileName names a mail, the same at every try, so that names sort by time.
func fileName(q queued) string {
	return q.QueuedAt.UTC().Format("20060102T150405") + fmt.Sprintf("%06d", q.QueuedAt.Nanosecond()/int(time.Microsecond)) + "Z-" + fileID(q.Invitation.ID)
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
