package harness

import (
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// Mail is a mail from the service's outbox.
type Mail struct {
	Header mail.Header
	// Text has the decoded text of all parts, one after the other.
	Text string
	sent time.Time
}

var invitationLink = regexp.MustCompile(`https?://[^\s"'<>]+/portal/invitations/[A-Za-z0-9._~-]+`)

// Link returns the first invitation link of the mail, or "".
func (m Mail) Link() string { return invitationLink.FindString(m.Text) }

// Mails waits until the outbox has at least count mails to an address and returns them, oldest
// first. The service must run without an SMTP server.
func (s *Service) Mails(address string, count int) []Mail {
	s.t.Helper()
	var mails []Mail
	streamstest.Eventually(s.t, "mail to "+address, func() bool {
		mails = mails[:0]
		files, err := filepath.Glob(filepath.Join(s.Dir, "outbox", "*.eml"))
		Must(s.t, err)
		for _, path := range files {
			if m, ok := readMail(s.t, path, address); ok {
				mails = append(mails, m)
			}
		}
		return len(mails) >= count
	})
	slices.SortStableFunc(mails, func(a, b Mail) int { return a.sent.Compare(b.sent) })
	return mails
}

var signInPath = regexp.MustCompile(`/portal/sign-in/[A-Za-z0-9._~-]+`)

// SignInLinks waits until an address has been sent at least count mails that were asked for on the
// page to sign in. It returns the paths of their links, oldest first.
func (s *Service) SignInLinks(address string, count int) []string {
	s.t.Helper()
	var paths []string
	streamstest.Eventually(s.t, "mail to sign in to "+address, func() bool {
		paths = paths[:0]
		for _, m := range s.Mails(address, 0) {
			if m.Header.Get("Subject") == "Sign in" {
				paths = append(paths, signInPath.FindString(m.Text))
			}
		}
		return len(paths) >= count
	})
	return paths
}

// SignInLink asks for a mail to sign in and returns the path of its link.
func (s *Service) SignInLink(address string, ask func()) string {
	s.t.Helper()
	before := len(s.SignInLinks(address, 0))
	ask()
	return s.SignInLinks(address, before+1)[before]
}

func readMail(t testing.TB, path, address string) (Mail, bool) {
	t.Helper()
	file, err := os.Open(path)
	Must(t, err)
	defer file.Close()
	message, err := mail.ReadMessage(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	to, err := message.Header.AddressList("To")
	if err != nil {
		t.Fatalf("%s: To: %v", path, err)
	}
	if !slices.ContainsFunc(
		to, func(a *mail.Address) bool { return strings.EqualFold(a.Address, address) },
	) {
		return Mail{}, false
	}
	info, err := file.Stat()
	Must(t, err)
	text, err := decodePart(
		message.Header.Get("Content-Type"), message.Header.Get("Content-Transfer-Encoding"),
		message.Body,
	)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return Mail{Header: message.Header, Text: text, sent: info.ModTime()}, true
}

// decodePart returns the text of a MIME part and of the parts within it.
func decodePart(contentType, encoding string, body io.Reader) (string, error) {
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(mediaType, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		text := ""
		for {
			part, err := parts.NextRawPart()
			if err == io.EOF {
				return text, nil
			}
			if err != nil {
				return "", err
			}
			inner, err := decodePart(
				part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"), part,
			)
			if err != nil {
				return "", err
			}
			text += inner + "\n"
		}
	}
	switch strings.ToLower(encoding) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	return string(text), err
}

// Open requests a link without an API key, as a browser does.
func Open(t testing.TB, method, link string) Answer {
	t.Helper()
	request, err := http.NewRequest(method, link, nil)
	Must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, link, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Must(t, err)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: body}
}
