package domain_test

import (
	"errors"
	"strings"
	"testing"

	"hubcloud/domain"
)

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"a", strings.Repeat("a", 255), strings.Repeat("ü", 255), strings.Repeat("🔑", 255),
		strings.Repeat("\xff", 255), " ", "a b",
	} {
		if err := domain.CheckIdempotencyKey(key); err != nil {
			t.Errorf("%d bytes: %v", len(key), err)
		}
	}
	for _, key := range []string{"", strings.Repeat("a", 256), strings.Repeat("ü", 256)} {
		err := domain.CheckIdempotencyKey(key)
		if !errors.Is(err, &domain.Error{Code: domain.CodeInvalidRequest}) ||
			!strings.Contains(err.Error(), "Idempotency-Key: ") {
			t.Errorf("%d bytes: got %v, want invalid_request", len(key), err)
		}
	}
}
