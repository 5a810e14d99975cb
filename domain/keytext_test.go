package domain_test

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

// Customers store keys, so the form of keys must not change.
func TestKeyFormIsFixed(t *testing.T) {
	t.Parallel()
	var entropy [domain.KeyEntropy]byte
	for i := range entropy {
		entropy[i] = byte(i * 5)
	}
	key := domain.NewKey(domain.EnvironmentLive, entropy)
	const want = "hc_live_ojBPxMaO7Mk7J34NNtAWHf7dWa93WUz8DSFP5HuSPpRZukbQx8y7Tbv31QDfz"
	if got := key.Reveal(); got != want {
		t.Errorf("NewKey: got %s, want %s", got, want)
	}
}

func TestKeysParseBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		environment := rapid.SampledFrom([]string{domain.EnvironmentLive, domain.EnvironmentDev}).
			Draw(t, "environment")
		entropy := rapid.SliceOfN(rapid.Byte(), domain.KeyEntropy, domain.KeyEntropy).
			Draw(t, "entropy")
		key := domain.NewKey(environment, [domain.KeyEntropy]byte(entropy))
		parsed, err := domain.ParseKey(key.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if parsed != key || !domain.IsKeyID(key.ID) {
			t.Fatalf("ParseKey: got %#v, want %#v", parsed, key)
		}
		if key.SecretHash() != sha256.Sum256([]byte(key.Secret)) {
			t.Fatal("the hash is not the secret's")
		}
	})
}

func TestParseKeyRejects(t *testing.T) {
	t.Parallel()
	key := domain.NewKey(domain.EnvironmentLive, [domain.KeyEntropy]byte{7}).Reveal()
	flipped := []byte(key)
	flipped[20] ^= 1
	for name, s := range map[string]string{
		"nothing":             "",
		"another prefix":      "sk" + key[2:],
		"another environment": strings.Replace(key, "live", "test", 1),
		"no environment":      strings.Replace(key, "live_", "", 1),
		"the other live one":  strings.Replace(key, "live", "dev", 1),
		"cut off":             key[:len(key)-1],
		"too long":            key + "0",
		"white space":         key + " ",
		"a character changed": string(flipped),
		"the check sum alone": key[:len(key)-1] + "!",
		"no base 62":          strings.Replace(key, key[30:31], "-", 1),
		"two characters":      "hc_live_" + key[9:10] + key[8:9] + key[10:],
	} {
		if s == key {
			continue // the two swapped characters are equal
		}
		if _, err := domain.ParseKey(s); domain.CodeOf(err) != domain.CodeUnauthenticated ||
			strings.Contains(err.Error(), key[20:40]) {
			t.Errorf("%s: got %v, want unauthenticated without the secret", name, err)
		}
	}
}

// A key that is logged or put into an error by mistake must not reveal its secret.
func TestKeyPrintsWithoutItsSecret(t *testing.T) {
	t.Parallel()
	key := domain.NewKey(domain.EnvironmentDev, [domain.KeyEntropy]byte{1, 2, 3, 40: 9})
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("made", "key", key)
	for _, text := range []string{
		fmt.Sprint(key), fmt.Sprintf("%v %+v %#v %s %q", key, key, key, key, key), log.String(),
	} {
		if strings.Contains(text, key.Secret) || !strings.Contains(text, key.ID) {
			t.Errorf("got %s, want the id without the secret", text)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	key := domain.NewKey(domain.EnvironmentLive, [domain.KeyEntropy]byte{7}).Reveal()
	f.Add(key)
	f.Add(key[:40])
	f.Add("hc_dev_" + key[8:])
	f.Add("hc_live__" + key[9:])
	f.Add("hc_\xff_\x00")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := domain.ParseKey(s)
		if err != nil {
			if domain.CodeOf(err) != domain.CodeUnauthenticated {
				t.Fatal(err)
			}
			return
		}
		if k.Reveal() != s || !domain.IsKeyID(k.ID) || !domain.IsEnvironment(k.Environment) {
			t.Fatalf("ParseKey(%q): got %#v", s, k)
		}
	})
}
