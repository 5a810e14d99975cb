package mail_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/httpapi/mail"
	"hubcloud/streams/streamstest"
)

// TestSignInMail checks that both parts have the link, that every try is the same mail, and that it
// is sent only while its recipient may sign in.
func TestSignInMail(t *testing.T) {
	t.Parallel()
	dir, q := t.TempDir(), &queue{}
	folder, err := mail.NewFolder(dir)
	streamstest.Must(t, err)
	allowed := false
	m := newMailer(t, mail.Config{
		Queue: q, Transport: folder,
		Now: func() time.Time { return now },
		SignInRecipient: func(_ context.Context, email string) (string, error) {
			if !allowed || email != "Ann@example.org" {
				return "", nil
			}
			return "ann@example.org", nil // the address of the account
		},
	})
	const link = "https://hubs.example.org/portal/sign-in/XnW3ZZpL7DOpG0BvrWjjcDVIMyUq2Ho-EQYDdNIgkjI"
	expires := now.Add(15 * time.Minute)
	for range 2 {
		streamstest.Must(t, m.SendSignIn(t.Context(), "Ann@example.org", link, expires))
	}
	if q.ids[0] == q.ids[1] || !q.expires[0].Equal(expires) {
		t.Errorf("queued as %q until %v", q.ids, q.expires)
	}
	if err := m.Deliver(t.Context(), q.contents[0]); !errors.Is(err, mail.ErrObsolete) {
		t.Errorf("deliver to somebody who may not sign in: got %v, want ErrObsolete", err)
	}
	allowed = true
	for range 2 {
		streamstest.Must(t, m.Deliver(t.Context(), q.contents[0]))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got files %q, %v, want one", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 ||
		!strings.HasPrefix(info.Name(), "20260102T150405123456Z-"+q.ids[0]) {
		t.Errorf("got file %v, %v, want its time and id, and mode 0600", info, err)
	}
	w := readMail(t, fileIn(t, dir))
	if w.subject != "Sign in" || !strings.Contains(w.text, link) ||
		strings.Count(w.html, link) != 3 ||
		!strings.Contains(w.text, "2 January 2026, 15:19 UTC") ||
		w.header.Get("To") != "<ann@example.org>" {
		t.Errorf("got mail %+v", w)
	}
	if err := m.Deliver(t.Context(), []byte(`{}`)); !errors.Is(err, mail.ErrRejected) {
		t.Errorf("deliver a mail of no kind: got %v, want ErrRejected", err)
	}
}
