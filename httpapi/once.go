package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"hubcloud/domain"
)

// idempotencyKey returns the key under which a request is done once; "" when the client gives none.
func idempotencyKey(header http.Header) (string, error) {
	values := header["Idempotency-Key"]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], domain.CheckIdempotencyKey(values[0])
	default:
		return "", invalid("Idempotency-Key: must be given once")
	}
}

// answerOnce answers with what do returns. Under a key that is not empty it is done once, and the
// same body sent again gets the first answer. body is what was read from the request: its JSON
// tells requests of this route apart. do gets the id of what it makes; "" makes one.
func (x *exchange) answerOnce(
	status int, key string, body any, do func(ctx context.Context, id string) (any, error),
) error {
	if key == "" {
		done, err := do(x.ctx, "")
		if err != nil {
			return err
		}
		return x.writeJSON(status, done)
	}
	request, err := json.Marshal(struct {
		Method, Path string
		Body         any
	}{x.route.method, x.route.pattern, body})
	if err != nil {
		return err
	}
	answer, err := x.api.Once.Once(
		x.ctx,
		x.key.OrgID,
		key,
		request,
		func(ctx context.Context, id string) ([]byte, error) {
			done, err := do(ctx, id)
			if err != nil {
				return nil, err
			}
			return json.Marshal(done)
		},
	)
	if err != nil {
		return err
	}
	return x.writeJSON(status, json.RawMessage(answer))
}
