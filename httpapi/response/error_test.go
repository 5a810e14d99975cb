package response_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

func TestFrom(t *testing.T) {
	t.Parallel()
	cause := errors.New("password=secret")
	invalid := domain.Errorf(domain.CodeInvalidRequest, "name: is required")
	for name, tt := range map[string]struct {
		err    error
		status int
		code   domain.Code
		logged bool
		header http.Header
	}{
		"a status of its own": {err: response.WithStatus(405, invalid), status: 405, code: domain.CodeInvalidRequest},
		"an unknown error":    {err: cause, status: 500, code: domain.CodeInternal, logged: true},
		"an internal error with a message": {
			err:    domain.Errorf(domain.CodeInternal, "password=secret"),
			status: 500, code: domain.CodeInternal, logged: true,
		},
		"an unknown code": {
			err:    domain.Errorf("no_such_code", "password=secret"),
			status: 500, code: domain.CodeInternal, logged: true,
		},
		"rate limited, with a delay": {
			err: &domain.Error{Code: domain.CodeRateLimited, Message: "slower",
				RetryAfter: 1500 * time.Millisecond},
			status: 429, code: domain.CodeRateLimited,
			header: http.Header{"Retry-After": {"2"}},
		},
	} {
		answer := response.FromError(tt.err)
		if answer.Status != tt.status || answer.Error.Code != tt.code {
			t.Errorf(
				"%s: got %d %s, want %d %s", name, answer.Status, answer.Error.Code, tt.status,
				tt.code,
			)
		}
		if logged := answer.Cause != nil; logged != tt.logged {
			t.Errorf("%s: got cause %v, want one: %t", name, answer.Cause, tt.logged)
		}
		body := answer.Body("id").Error
		if body.Type != tt.code || body.RequestID != "id" || body.Message == "" ||
			strings.Contains(body.Message, "secret") {
			t.Errorf("%s: got body %+v, want type %s without the cause", name, body, tt.code)
		}
		header := http.Header{}
		answer.SetHeader(header)
		if fmt.Sprint(header) != fmt.Sprint(tt.header) && len(header)+len(tt.header) > 0 {
			t.Errorf("%s: got header %v, want %v", name, header, tt.header)
		}
	}
}
