package httpapi

import (
	"context"
	"encoding/json"

	"hubcloud/domain"
)

// idempotencyKey returns the request's Idempotency-Key, or "" if it has none. An API key that is
// limited to sites has names of its own: it must not learn which ones others have used.
func (req *request) idempotencyKey() (string, error) {
	values := req.http.Header["Idempotency-Key"]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		name := values[0]
		if req.key.Reach.Limited() {
			name = req.key.ID + "\x00" + name
		}
		return name, domain.CheckIdempotencyKey(values[0])
	default:
		return "", invalid("Idempotency-Key: must be given once")
	}
}

// answerOnce calls do and answers with its result. do receives the id of the resource to create, or
// "" to choose one itself.
//
// If key, the Idempotency-Key, is not empty, do runs once for the key of the organization, and a
// repeated request gets the first answer. A request with the key is a repetition if its method, its
// route and the JSON of body are equal; any other is idempotency_conflict. body must therefore
// contain everything that changes the result, including parameters of the path.
func (req *request) answerOnce(
	status int, key string, body any, do func(ctx context.Context, id string) (any, error),
) error {
	answer, err := req.once(key, body, do)
	return req.answer(status, answer, err)
}

// onceAs is once with an answer of a type, also where the request is repeated.
func onceAs[T any](
	req *request, key string, body any, do func(ctx context.Context, id string) (T, error),
) (answer T, err error) {
	stored, err := req.once(key, body, func(ctx context.Context, id string) (any, error) {
		return do(ctx, id)
	})
	if err != nil {
		return answer, err
	}
	text, err := json.Marshal(stored)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}

// once is answerOnce that returns the answer.
func (req *request) once(
	key string, body any, do func(ctx context.Context, id string) (any, error),
) (any, error) {
	if key == "" {
		return do(req.ctx, "")
	}
	fingerprint, err := json.Marshal(struct {
		Method string
		Route  string
		Body   any
	}{req.route.method, req.route.pattern, body})
	if err != nil {
		return nil, err
	}
	doJSON := func(ctx context.Context, id string) ([]byte, error) {
		result, err := do(ctx, id)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}
	answer, replayed, err := req.api.Idempotency.Once(
		req.ctx, req.key.Reach.OrgID, key, fingerprint, doJSON,
	)
	req.setReplayed(replayed && err == nil)
	return json.RawMessage(answer), err
}

// setReplayed marks an answer that is remembered under the request's Idempotency-Key.
func (req *request) setReplayed(replayed bool) {
	if replayed {
		req.w.Header()["Idempotent-Replayed"] = []string{"true"}
	}
}
