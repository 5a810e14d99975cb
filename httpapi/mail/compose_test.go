package mail_test

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	htmlpkg "html"

	"hubcloud/domain"
	"hubcloud/httpapi/mail"
	"hubcloud/streams/streamstest"
)

const (
	publicURL = "https://hubs.example.org"
	token     = "AaH8_O8cfTGDFqYDlZI-vAGh_PzxYXtujd-92QN_Bsp98U5BZPEvtYjE-iDy4Hh5XfwaafROGZPaD5D-GpPdHQ"
	link      = publicURL + "/portal/invitations/" + token
)

// queue is a mail.Queue in memory.
type queue struct {
	ids      []string
	contents [][]byte
	expires  []time.Time
}

func (q *queue) Put(_ context.Context, e mail.Envelope) error {
	q.ids = append(q.ids, e.ID)
	q.contents = append(q.contents, e.Content)
	q.expires = append(q.expires, e.Expires)
	return nil
}

// HasSpace returns nil.
func (*queue) HasSpace(context.Context, string, string) error { return nil }

var now = time.Date(2026, 1, 2, 15, 4, 5, 123456789, time.UTC)

// newMailer returns the mailer of a configuration that is completed with a sender and a URL.
func newMailer(t testing.TB, cfg mail.Config) *mail.Mailer {
	t.Helper()
	if cfg.From.Address == "" {
		cfg.From.Address = "hubs@example.org"
	}
	cfg.PublicURL = publicURL
	m, err := mail.New(cfg)
	streamstest.Must(t, err)
	return m
}

func mailer(t testing.TB, q mail.Queue, transport mail.Transport) *mail.Mailer {
	t.Helper()
	return newMailer(t, mail.Config{
		From:  netmail.Address{Name: "Hübe", Address: "hubs@example.org"},
		Queue: q, Transport: transport, Now: func() time.Time { return now },
	})
}

func invitation(orgName string) domain.InvitationMail {
	return domain.InvitationMail{
		Invitation: domain.Invitation{
			ID: "01a1fcfc-f161-7b6e-8ddf-bdd9037f06ca", Email: "ann@example.org",
			ExpiresAt: now.Add(7 * 24 * time.Hour),
		},
		Access: domain.AccessAdmin, OrgName: orgName, Token: token,
	}
}

// received is a parsed mail.
type received struct {
	header     netmail.Header
	subject    string
	text, html string
}

func readMail(t testing.TB, raw string) received {
	t.Helper()
	for line := range strings.SplitSeq(raw, "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n\x00") {
			t.Fatalf(
				"a line has %d bytes, want at most 998 and no control characters: %q", len(line),
				line,
			)
		}
	}
	message, err := netmail.ReadMessage(strings.NewReader(raw))
	streamstest.Must(t, err)
	w := received{header: message.Header}
	w.subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject"))
	streamstest.Must(t, err)
	mediaType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/alternative" {
		t.Fatalf("got media type %s, %v, want multipart/alternative", mediaType, err)
	}
	parts := multipart.NewReader(message.Body, params["boundary"])
	for _, want := range []struct {
		contentType string
		into        *string
	}{{"text/plain; charset=UTF-8", &w.text}, {"text/html; charset=UTF-8", &w.html}} {
		part, err := parts.NextRawPart()
		streamstest.Must(t, err)
		if got := part.Header.Get("Content-Type"); got != want.contentType {
			t.Errorf("got a part of type %s, want %s", got, want.contentType)
		}
		var body io.Reader = part
		switch encoding := part.Header.Get("Content-Transfer-Encoding"); encoding {
		case "quoted-printable":
			body = quotedprintable.NewReader(part)
		case "8bit":
		default:
			t.Errorf("got a part with encoding %q, want quoted-printable or 8bit", encoding)
		}
		content, err := io.ReadAll(body)
		streamstest.Must(t, err)
		*want.into = strings.ReplaceAll(string(content), "\r\n", "\n")
	}
	if _, err := parts.NextPart(); !errors.Is(err, io.EOF) {
		t.Errorf("got a third part (%v), want two", err)
	}
	return w
}

// composed returns the file of an invitation that was delivered to a folder.
func composed(t testing.TB, inv domain.InvitationMail) string {
	t.Helper()
	dir := t.TempDir()
	folder, err := mail.NewFolder(dir)
	streamstest.Must(t, err)
	q := &queue{}
	m := mailer(t, q, folder)
	streamstest.Must(t, m.SendInvitation(t.Context(), inv))
	streamstest.Must(t, m.Deliver(t.Context(), q.contents[0]))
	return fileIn(t, dir)
}

// fileIn returns the only mail in a folder.
func fileIn(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got files %v, %v, want one", files, err)
	}
	raw, err := os.ReadFile(files[0])
	streamstest.Must(t, err)
	return string(raw)
}

// TestInvitation checks the headers and the content of both parts.
func TestInvitation(t *testing.T) {
	t.Parallel()
	invited := invitation("Häuser & Söhne")
	invited.InvitedBy = "olga@example.org"
	got := readMail(t, composed(t, invited))
	for name, want := range map[string]string{
		"To": "<ann@example.org>", "From": "=?utf-8?q?H=C3=BCbe?= <hubs@example.org>",
		"Auto-Submitted": "auto-generated",
		"Message-Id":     "<01a1fcfc-f161-7b6e-8ddf-bdd9037f06ca@example.org>",
		"Date":           "Fri, 02 Jan 2026 15:04:05 +0000", "Mime-Version": "1.0",
	} {
		if got := got.header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("header %s: got %q, want %q", name, got, want)
		}
	}
	if got.subject != "Invitation to Häuser & Söhne" {
		t.Errorf("got subject %q, want %q", got.subject, "Invitation to Häuser & Söhne")
	}
	for _, want := range []string{
		"\nHäuser & Söhne\n", "\n" + link + "\n", "as an admin", "9 January 2026, 15:04 UTC",
		"ann@example.org", "olga@example.org invites you to join",
	} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the text has no %q: %s", want, got.text)
		}
	}
	for _, want := range []string{
		"<bdi>Häuser &amp; Söhne</bdi>", `href="` + link + `"`, ">" + link + "<", "as an admin",
		"9 January 2026, 15:04 UTC", "ann@example.org", "<bdi>olga@example.org</bdi> invites you",
	} {
		if !strings.Contains(got.html, want) {
			t.Errorf("the HTML has no %q: %s", want, got.html)
		}
	}
	// The mail said that it can be ignored, though whoever opens its link joins.
	const opening = "Opening the link makes you a member at once."
	for _, part := range []string{got.text, got.html} {
		if !strings.Contains(part, opening) || strings.Contains(part, "ignore") {
			t.Errorf("got %q, want %q and no word that the mail can be ignored", part, opening)
		}
	}
	if !strings.Contains(composed(t, invitation("Häuser")), "\r\n"+link+"\r\n") {
		t.Error("the link is broken over lines in the file")
	}
	asMember := invitation("Acme")
	asMember.Access = domain.AccessMember
	asViewer := asMember
	asViewer.Access = domain.AccessViewer
	if got := readMail(t, composed(t, asViewer)); !strings.Contains(got.text, "as a viewer, who sees") {
		t.Errorf("got %s, want an invitation as a viewer", got.text)
	}
	if got := readMail(t, composed(t, asMember)); !strings.Contains(got.text, "as a member") ||
		!strings.Contains(got.html, "as a member") {
		t.Errorf("got %s, want an invitation as a member", got.text)
	}
}

// An organization's name adds no headers, recipients, markup and lines.
func FuzzInvitation(f *testing.F) {
	for _, name := range []string{
		"Acme\r\nBcc: eve@example.org", "Acme\nBcc: eve@example.org\n\nBody",
		"\r\n\r\n<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
		`"><a href="https://evil.example">`, "=?utf-8?q?Evil=0D=0ABcc:_eve@example.org?=",
		"日本語の組織", "مؤسسة", "👩‍👩‍👧‍👦 Household", "A\u202Egro.live\u202C",
		"Line\u2028separator\u2029here", "nul\x00byte", "\xff\xfe not UTF-8",
		strings.Repeat("W", 200), strings.Repeat("é", 200), strings.Repeat("\"", 200),
		strings.Repeat("a ", 100), "a" + strings.Repeat(" ", 150) + "b", strings.Repeat("a  ", 60),
		strings.Repeat("😀", 200), ".", "..\r\n.\r\n", "{{.Link}}", "--\r\n", "&lt;b&gt;",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if utf8.RuneCountInString(name) > domain.MaxNameLength {
			return
		}
		checkName(t, name)
	})
}

func checkName(t testing.TB, name string) {
	t.Helper()
	got := readMail(t, composed(t, invitation(name)))
	allowed := []string{
		"Auto-Submitted",
		"Content-Type",
		"Date",
		"From",
		"Message-Id",
		"Mime-Version",
		"Subject",
		"To",
	}
	for field, values := range got.header {
		if !slices.Contains(allowed, field) || len(values) != 1 {
			t.Errorf("%q: the header has %s %q", name, field, values)
		}
	}
	to, err := got.header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Address != "ann@example.org" {
		t.Errorf("%q: to %v, %v", name, to, err)
	}
	shown, ok := strings.CutPrefix(
		strings.NewReplacer("=\u200B?", "=?", " \u00A0", "  ").Replace(got.subject),
		"Invitation to",
	)
	shown = strings.TrimSpace(shown)
	if !ok || strings.ContainsFunc(shown, unicode.IsControl) ||
		strings.ContainsFunc(
			shown, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) },
		) {
		t.Errorf("%q: subject %q", name, got.subject)
	}
	lines := strings.Split(got.text, "\n")
	if len(lines) != 15 || strings.TrimSpace(lines[1]) != shown {
		t.Errorf(
			"%q: the subject has %q, the text %d lines with %q", name, shown, len(lines), lines[1],
		)
	}
	_, inner, _ := strings.Cut(got.html, "<bdi>")
	inner, _, _ = strings.Cut(inner, "</bdi>")
	if strings.ContainsAny(inner, "<>\"") ||
		strings.TrimSpace(htmlpkg.UnescapeString(inner)) != shown {
		t.Errorf("%q: the HTML has %q", name, inner)
	}
	if strings.Count(got.html, "<a ") != 2 || strings.Count(got.html, `href="`+link+`"`) != 2 {
		t.Errorf("%q: other links: %s", name, got.html)
	}
}

// TestMailThatCannotBeComposedIsRejected: such a mail must not be tried again forever.
func TestMailThatCannotBeComposedIsRejected(t *testing.T) {
	t.Parallel()
	folder, err := mail.NewFolder(t.TempDir())
	streamstest.Must(t, err)
	q := &queue{}
	m := mailer(t, q, folder)
	bad := invitation("Acme")
	bad.Invitation.Email = "ann"
	streamstest.Must(t, m.SendInvitation(t.Context(), bad))
	for _, content := range [][]byte{q.contents[0], nil, []byte("{"), []byte("[]")} {
		if err := m.Deliver(t.Context(), content); !errors.Is(err, mail.ErrRejected) {
			t.Errorf("deliver %s: got %v, want ErrRejected", content, err)
		}
	}
}

// TestInvitationThatIsOver checks that the mail is not sent, and that it waits while the recipient
// cannot be looked up.
func TestInvitationThatIsOver(t *testing.T) {
	t.Parallel()
	dir, away := t.TempDir(), errors.New("the broker is away")
	folder, err := mail.NewFolder(dir)
	streamstest.Must(t, err)
	for _, c := range []struct {
		pending   bool
		err, want error
		files     int
	}{{false, nil, mail.ErrObsolete, 0}, {true, away, away, 0}, {true, nil, nil, 1}} {
		q := &queue{}
		m := newMailer(t, mail.Config{
			Queue: q, Transport: folder,
			InvitationRecipient: func(_ context.Context, asked, email string) (string, error) {
				if !c.pending || asked != token {
					return "", c.err
				}
				return email, c.err
			},
		})
		streamstest.Must(t, m.SendInvitation(t.Context(), invitation("Acme")))
		if err := m.Deliver(t.Context(), q.contents[0]); !errors.Is(err, c.want) ||
			errors.Is(err, mail.ErrRejected) {
			t.Errorf("deliver: got %v, want %v", err, c.want)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != c.files {
			t.Errorf("got files %v, %v", files, err)
		}
	}
}

// TestFolderThatIsGone checks that a missing folder is ErrUnreachable: the mail is kept.
func TestFolderThatIsGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "outbox")
	folder, err := mail.NewFolder(dir)
	streamstest.Must(t, err)
	q := &queue{}
	m := mailer(t, q, folder)
	err = errors.Join(m.SendInvitation(t.Context(), invitation("Acme")), os.Remove(dir))
	streamstest.Must(t, err)
	if err := m.Deliver(t.Context(), q.contents[0]); !errors.Is(err, mail.ErrUnreachable) {
		t.Errorf("deliver: got %v, want ErrUnreachable", err)
	}
}

// TestDomainsOutsideASCII checks that headers have the ASCII form, which every server accepts.
func TestDomainsOutsideASCII(t *testing.T) {
	t.Parallel()
	inv := invitation("Acme")
	inv.Invitation.Email = "ann@bücher.example"
	got := readMail(t, composed(t, inv))
	if to := got.header.Get("To"); to != "<ann@xn--bcher-kva.example>" ||
		!strings.Contains(got.text, "ann@bücher.example") {
		t.Errorf("got recipient %s, text: %s", to, got.text)
	}
}
