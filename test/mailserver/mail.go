package mailserver

import (
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
)

// Mail is a mail that arrived.
type Mail struct {
	From, To string
	// Raw is the message as it was transferred.
	Raw string
	// Secured reports whether the mail came over TLS.
	Secured bool
}

// Read returns the decoded subject of the mail and the text of its first part, with "\n" as the end
// of each line.
func (m Mail) Read(t testing.TB) (subject, text string) {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(m.Raw))
	if err != nil {
		t.Fatalf("mail to %s: %v", m.To, err)
	}
	if subject, err = new(mime.WordDecoder).DecodeHeader(
		message.Header.Get("Subject"),
	); err != nil {
		t.Fatalf("subject of the mail to %s: %v", m.To, err)
	}
	_, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatalf("media type of the mail to %s: %v", m.To, err)
	}
	part, err := multipart.NewReader(message.Body, params["boundary"]).NextRawPart()
	if err != nil {
		t.Fatalf("first part of the mail to %s: %v", m.To, err)
	}
	var body io.Reader = part
	if part.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		body = quotedprintable.NewReader(part)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("text of the mail to %s: %v", m.To, err)
	}
	return subject, strings.ReplaceAll(string(content), "\r\n", "\n")
}
