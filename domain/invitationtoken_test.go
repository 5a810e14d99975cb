package domain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

func TestInvitationToken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := func(n int, label string) []byte {
			return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label)
		}
		at := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "time"))
		token := domain.InvitationToken{
			OrgID:        domain.NewUUIDv7(at, [10]byte(bytes(10, "org"))),
			InvitationID: domain.NewUUIDv7(at, [10]byte(bytes(10, "invitation"))),
			Secret:       [32]byte(bytes(32, "secret")),
		}
		text := token.Reveal()
		if got, err := domain.ParseInvitationToken(text); err != nil || got != token {
			t.Fatalf("ParseInvitationToken(%s): got %#v, %v, want %#v", text, got, err, token)
		}
		if len(text) != 86 || strings.ContainsFunc(text, func(r rune) bool {
			return !strings.ContainsRune(
				"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", r,
			)
		}) {
			t.Fatalf("Reveal: got %s, want 86 characters that a URL may have", text)
		}
		for _, printed := range []string{
			fmt.Sprint(token), fmt.Sprintf("%#v", token), fmt.Sprintf("%+v", token),
			token.LogValue().String(),
		} {
			secret := strings.Contains(printed, text[44:]) || strings.Contains(printed, fmt.Sprint(token.Secret[:4]))
			if secret || !strings.Contains(printed, token.InvitationID) {
				t.Fatalf("got %s, want the id without the secret", printed)
			}
		}
	})
}

func FuzzParseInvitationToken(f *testing.F) {
	text := link(1).Reveal()
	for _, seed := range []string{
		"", text, text + "=", text[1:], text + "A", strings.Repeat("A", 86),
		strings.Repeat("_", 86), text[:85] + "B", "a\n" + text,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := domain.ParseInvitationToken(s)
		if err != nil {
			if domain.CodeOf(err) != domain.CodeNotFound {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if !domain.IsUUID(token.OrgID) || !domain.IsUUID(token.InvitationID) || token.Reveal() != s {
			t.Errorf("%q is %#v", s, token)
		}
	})
}
