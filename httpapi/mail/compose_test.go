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
)

const link = "https://hubs.example.org/portal/invitations/AaH8_O8cfTGDFqYDlZI-vAGh_PzxYXtujd-92QN_Bsp98U5BZPEvtYjE-iDy4Hh5XfwaafROGZPaD5D-GpPdHQ"

// queue is where a test's mails go instead of a durable queue.
type queue struct {
	ids      []string
	contents [][]byte
	expires  []time.Time
}

func (q *queue) Put(_ context.Context, e mail.Envelope) error {
	q.ids, q.contents, q.expires = append(q.ids, e.ID), append(q.contents, e.Content), append(q.expires, e.Expires)
	return nil
}

var now = time.Date(2026, 1, 2, 15, 4, 5, 123456789, time.UTC)

func mailer(q mail.Queue, transport mail.Transport) *mail.Mailer {
	return mail.New(mail.Config{
		From: netmail.Address{
			Name:    "Hübe",
			Address: "hubs@example.org",
		}, Queue: q, Transport: transport, Now: func() time.Time { return now },
	})
}

func invitation(orgName string) mail.Invitation {
	return mail.Invitation{
		ID: "01a1fcfc-f161-7b6e-8ddf-bdd9037f06ca", To: "ann@example.org", OrgName: orgName,
		Role: domain.RoleAdmin, Link: link,
		ExpiresAt: now.Add(7 * 24 * time.Hour),
	}
}

// written is a mail as it arrives somewhere, taken apart.
type written struct {
	header     netmail.Header
	subject    string
	text, html string
}

func readMail(t testing.TB, raw string) written {
	t.Helper()
	for line := range strings.SplitSeq(raw, "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n\x00") {
			t.Fatalf("a line of %d bytes: %q", len(line), line)
		}
	}
	message, err := netmail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	w := written{header: message.Header}
	if w.subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	mediaType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/alternative" {
		t.Fatalf("%s, %v", mediaType, err)
	}
	parts := multipart.NewReader(message.Body, params["boundary"])
	for _, want := range []struct {
		contentType string
		into        *string
	}{{"text/plain; charset=UTF-8", &w.text}, {"text/html; charset=UTF-8", &w.html}} {
		part, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		if got := part.Header.Get("Content-Type"); got != want.contentType {
			t.Errorf("a part of %s", got)
		}
		var body io.Reader = part
		switch encoding := part.Header.Get("Content-Transfer-Encoding"); encoding {
		case "quoted-printable":
			body = quotedprintable.NewReader(part)
		case "8bit":
		default:
			t.Errorf("a part in %q", encoding)
		}
		content, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		*want.into = strings.ReplaceAll(string(content), "\r\n", "\n")
	}
	if _, err := parts.NextPart(); !errors.Is(err, io.EOF) {
		t.Errorf("a third part: %v", err)
	}
	return w
}

// composed gives an invitation as it lies in a folder.
func composed(t testing.TB, inv mail.Invitation) string {
	t.Helper()
	dir := t.TempDir()
	folder, err := mail.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	m := mailer(q, folder)
	if err := m.SendInvitation(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	if err := m.Deliver(t.Context(), q.contents[0]); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the folder has %v, %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestInvitation holds what a mail says, in text and in HTML.
func TestInvitation(t *testing.T) {
	t.Parallel()
	got := readMail(t, composed(t, invitation("Häuser & Söhne")))
	for name, want := range map[string]string{
		"To": "<ann@example.org>", "From": "=?utf-8?q?H=C3=BCbe?= <hubs@example.org>",
		"Auto-Submitted": "auto-generated",
		"Message-Id":     "<01a1fcfc-f161-7b6e-8ddf-bdd9037f06ca@example.org>",
		"Date":           "Fri, 02 Jan 2026 15:04:05 +0000", "Mime-Version": "1.0",
	} {
		if got := got.header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got.subject != "Invitation to Häuser & Söhne" {
		t.Errorf("subject %q", got.subject)
	}
	for _, want := range []string{
		"\nHäuser & Söhne\n", "\n" + link + "\n", "as an admin", "9 January 2026, 15:04 UTC",
		"ann@example.org",
	} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the text has no %q: %s", want, got.text)
		}
	}
	for _, want := range []string{
		"<bdi>Häuser &amp; Söhne</bdi>", `href="` + link + `"`, ">" + link + "<", "as an admin",
		"9 January 2026, 15:04 UTC", "ann@example.org",
	} {
		if !strings.Contains(got.html, want) {
			t.Errorf("the HTML has no %q: %s", want, got.html)
		}
	}
	if !strings.Contains(composed(t, invitation("Häuser")), "\r\n"+link+"\r\n") {
		t.Error("the link is not whole in the file")
	}
	asMember := invitation("Acme")
	asMember.Role = domain.RoleMember
	if got := readMail(t, composed(t, asMember)); !strings.Contains(got.text, "as a member") ||
		!strings.Contains(got.html, "as a member") {
		t.Errorf("a member is invited as something else: %s", got.text)
	}
}

// TestHostileNames: what an organization calls itself stays a name, in every place where it stands.
func TestHostileNames(t *testing.T) {
	t.Parallel()
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
		checkName(t, name)
	}
}

func FuzzInvitation(f *testing.F) {
	f.Add("Acme\r\nBcc: eve@example.org")
	f.Add("=?utf-8?q?x?=")
	f.Add("<b>&\u202E")
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
	if len(lines) != 13 || strings.TrimSpace(lines[1]) != shown {
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

// TestEveryTryIsTheSameMail, so that two of them can be told to be one.
func TestEveryTryIsTheSameMail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, err := mail.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	if err := mailer(q, folder).SendInvitation(t.Context(), invitation("Acme")); err != nil {
		t.Fatal(err)
	}
	if !q.expires[0].Equal(now.Add(7*24*time.Hour)) ||
		q.ids[0] != "01a1fcfc-f161-7b6e-8ddf-bdd9037f06ca" {
		t.Errorf("queued under %s until %s", q.ids[0], q.expires[0])
	}
	for range 3 {
		later := mail.New(
			mail.Config{
				From:      netmail.Address{Address: "hubs@example.org"},
				Queue:     q,
				Transport: folder,
			},
		)
		if err := later.Deliver(t.Context(), q.contents[0]); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 ||
		files[0].Name() != "20260102T150405123456Z-01a1fcfc-f161-7b6e-8ddf-bdd9037f06ca.eml" {
		t.Errorf("the folder has %v, %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}

// TestMailThatCannotBeComposedIsRefused: it would never go out, and must not be tried for ever.
func TestMailThatCannotBeComposedIsRefused(t *testing.T) {
	t.Parallel()
	folder, err := mail.NewFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	m := mailer(q, folder)
	bad := invitation("Acme")
	bad.To = "ann"
	if err := m.SendInvitation(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	for _, content := range [][]byte{q.contents[0], nil, []byte("{"), []byte("[]")} {
		if err := m.Deliver(t.Context(), content); !errors.Is(err, mail.ErrRefused) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestInvitationThatIsOver is not sent; when nobody can say whether it is, the mail waits.
func TestInvitationThatIsOver(t *testing.T) {
	t.Parallel()
	dir, away := t.TempDir(), errors.New("the broker is away")
	folder, err := mail.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		wanted    bool
		err, want error
		files     int
	}{{false, nil, mail.ErrObsolete, 0}, {true, away, away, 0}, {true, nil, nil, 1}} {
		q := &queue{}
		m := mail.New(mail.Config{
			From: netmail.Address{Address: "hubs@example.org"}, Queue: q, Transport: folder,
			Invited: func(_ context.Context, inv mail.Invitation) (string, error) {
				if !c.wanted || inv.Link != link {
					return "", c.err
				}
				return inv.To, c.err
			},
		})
		if err := m.SendInvitation(t.Context(), invitation("Acme")); err != nil {
			t.Fatal(err)
		}
		if err := m.Deliver(t.Context(), q.contents[0]); !errors.Is(err, c.want) ||
			errors.Is(err, mail.ErrRefused) {
			t.Errorf("%v", err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != c.files {
			t.Errorf("the folder has %v, %v", files, err)
		}
	}
}

// TestFolderThatIsGone: a full or missing disk is no fault of the mail.
func TestFolderThatIsGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "outbox")
	folder, err := mail.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	m := mailer(q, folder)
	if err := errors.Join(m.SendInvitation(t.Context(), invitation("Acme")), os.Remove(dir)); err != nil {
		t.Fatal(err)
	}
	if err := m.Deliver(t.Context(), q.contents[0]); !errors.Is(err, mail.ErrUnreachable) {
		t.Error(err)
	}
}

// TestDomainsOutsideASCII are sent in the form that every server takes.
func TestDomainsOutsideASCII(t *testing.T) {
	t.Parallel()
	inv := invitation("Acme")
	inv.To = "ann@bücher.example"
	got := readMail(t, composed(t, inv))
	if to := got.header.Get("To"); to != "<ann@xn--bcher-kva.example>" ||
		!strings.Contains(got.text, "ann@bücher.example") {
		t.Errorf("to %s: %s", to, got.text)
	}
}
