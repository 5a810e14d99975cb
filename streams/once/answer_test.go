package once

import (
	"reflect"
	"testing"

	"hubcloud/domain"
)

// TestStoredAnswer: answers are read by other versions of the service, so their JSON stays.
func TestStoredAnswer(t *testing.T) {
	t.Parallel()
	for want, tc := range map[string]struct {
		body []byte
		err  error
	}{
		`{"body":{"id":"x"}}`: {body: []byte(`{"id":"x"}`)},
		`{"code":"forbidden","message":"only owners"}`: {
			err: domain.Errorf(domain.CodeForbidden, "only owners"),
		},
		"": {err: domain.Errorf(domain.CodeRateLimited, "too many")},
	} {
		got, err := finalAnswer(tc.body, tc.err)
		if err != nil || string(got) != want {
			t.Errorf("finalAnswer = %s, %v, want %s", got, err, want)
		}
		if want == "" {
			continue
		}
		body, err := restoreAnswer([]byte(want))
		if string(body) != string(tc.body) || !reflect.DeepEqual(err, tc.err) {
			t.Errorf("restoreAnswer = %s, %v, want %s, %v", body, err, tc.body, tc.err)
		}
	}
}
