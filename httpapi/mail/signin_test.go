package mail_test

import (
	"context"
	"errors"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/httpapi/mail"
)

// TestSignInMail says its link in both parts, the same at every try, and goes out only to who may
// have it at that moment.
func TestSignInMail(t *testing.T) {
	t.Parallel()
	dir, q := t.TempDir(), &queue{}
	folder, err := mail.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	may := false
	m := mail.New(mail.Config{
		Queue: q, Transport: folder, From: netmail.Address{Address: "hubs@example.org"},
		Now: func() time.Time { return now },
		MaySignIn: func(_ context.Context, s mail.SignIn) (string, error) {
			if !may || s.To != "Ann@example.org" {
				return "", nil
			}
			return "ann@example.org", nil // as it is stored
		},
	})
	const link = "https://hubs.example.org/portal/sign-in/XnW3ZZpL7DOpG0BvrWjjcDVIMyUq2Ho-EQYDdNIgkjI"
	expires := now.Add(15 * time.Minute)
	for range 2 {
		if err := m.SendSignIn(t.Context(), mail.SignIn{
			To: "Ann@example.org", Link: link, ExpiresAt: expires,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if q.ids[0] == q.ids[1] || !q.expires[0].Equal(expires) {
		t.Errorf("queued as %q until %v", q.ids, q.expires)
	}
	if err := m.Deliver(t.Context(), q.contents[0]); !errors.Is(err, mail.ErrObsolete) {
		t.Error(err)
	}
	may = true
	for range 2 {
		if err := m.Deliver(t.Context(), q.contents[0]); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	w := readMail(t, string(raw))
	if w.subject != "Sign in" || !strings.Contains(w.text, link) ||
		strings.Count(w.html, link) != 3 ||
		!strings.Contains(w.text, "2 January 2026, 15:19 UTC") ||
		w.header.Get("To") != "<ann@example.org>" {
		t.Errorf("%+v", w)
	}
	if err := m.Deliver(t.Context(), []byte(`{}`)); !errors.Is(err, mail.ErrRefused) {
		t.Errorf("a mail of no kind: %v", err)
	}
}
