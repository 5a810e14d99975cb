package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"hubcloud/domain"
)

func TestUnsubscribeToken(t *testing.T) {
	t.Parallel()
	key, other := domain.UnsubscribeKey{1, 2, 3}, domain.UnsubscribeKey{1, 2, 4}
	token := domain.UnsubscribeToken{OrgID: orgA, MemberID: ann}
	text := token.Seal(key)
	if got, err := domain.OpenUnsubscribeToken(key, text); err != nil || got != token {
		t.Errorf("open %s: got %+v, %v, want %+v", text, got, err, token)
	}
	changed := []byte(text)
	changed[3]++
	stranger := domain.UnsubscribeToken{OrgID: ann, MemberID: orgA}.Seal(key)
	for name, forged := range map[string]string{
		"another key":  token.Seal(other),
		"a changed id": string(changed),
		"a part":       text[:len(text)-4],
		"more":         text + "AAAA",
		"a line break": text[:8] + "\n" + text[8:],
		"swapped ids":  stranger[:43] + text[43:],
		"nothing":      "",
	} {
		if got, err := domain.OpenUnsubscribeToken(key, forged); err == nil ||
			domain.CodeOf(err) != domain.CodeNotFound {
			t.Errorf("%s: got %+v, %v, want not_found", name, got, err)
		}
	}
	if shown := fmt.Sprintf("%v %+v %#v %s", key, key, key, key); strings.Contains(shown, "2") {
		t.Errorf("the key prints as %q", shown)
	}
}

func FuzzOpenUnsubscribeToken(f *testing.F) {
	key := domain.UnsubscribeKey{7}
	f.Add(domain.UnsubscribeToken{OrgID: orgA, MemberID: ann}.Seal(key))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if token, err := domain.OpenUnsubscribeToken(key, text); err == nil && token.Seal(key) != text {
			t.Errorf("%q opens as %+v, which has another text", text, token)
		}
	})
}
