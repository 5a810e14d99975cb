package portal_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
)

// hooks is a portal.Webhooks whose deliveries have failed.
type hooks struct{}

func (hooks) CheckURL(url string) error {
	if url == "http://localhost/" {
		return domain.Errorf(domain.CodeInvalidRequest, "url: is of this machine")
	}
	return nil
}

func (hooks) Seal(id string) []byte                 { return []byte("sealed for " + id) }
func (hooks) Reveal(domain.Webhook) (string, error) { return "whsec_shown", nil }
func (hooks) Forget(context.Context, string)        {}

func (hooks) Progress(
	_ context.Context, w domain.Webhook,
) (domain.WebhookProgress, error) {
	return domain.WebhookProgress{FailingSince: w.CreatedAt, Deliveries: []domain.WebhookDelivery{
		{At: w.CreatedAt, Events: 3, Attempt: 2, Status: 500, Error: "<b>no</b>"},
	}}, nil
}

func (hooks) Test(context.Context, domain.Webhook) (domain.WebhookDelivery, error) {
	return domain.WebhookDelivery{Status: 204}, nil
}

// A manager creates a webhook, whose secret is shown once, and acts on it; a member only looks.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	withHooks := func(cfg *portal.Config) { cfg.Webhooks = hooks{} }
	b := w.open(t, withHooks).signIn(olga)
	_, page := b.post(inOne+"/webhooks", 400, "url", "http://localhost/", "name", "Mine")
	has(t, checkPage(t, page), "of this machine", `value="Mine"`)
	_, page = b.post(inOne+"/webhooks", 400, "url", "https://example.org/", "types", "*.x")
	if !strings.Contains(page, "types:") && !strings.Contains(page, "Types") {
		t.Errorf("wrong types: got %s, want the problem", page)
	}
	_, page = b.post(
		inOne+"/webhooks", 201, "url", "https://example.org/", "name", "Mine", "types", "hub.* x.y",
	)
	if checkPage(t, page); strings.Count(page, "whsec_shown") != 1 {
		t.Errorf("created: got %s, want the secret once", page)
	}
	page = b.get(inOne+"/webhooks", 200)
	id := regexp.MustCompile(`webhooks/([0-9a-f-]{36})`).FindStringSubmatch(page)
	if id == nil || strings.Contains(page, "whsec_") {
		t.Fatalf("list: got %s, want the webhook without its secret", page)
	}
	one := inOne + "/webhooks/" + id[1]
	page = b.get(one, 200)
	has(t, checkPage(t, page), "&lt;b&gt;no&lt;/b&gt;", "Failing", "hub.*")
	for action, want := range map[string]string{"test": "204", "rotate": "whsec_shown"} {
		if _, page = b.post(one+"/"+action, 200); !strings.Contains(page, want) {
			t.Errorf("%s: got %s, want %s on it", action, page, want)
		}
		checkPage(t, page)
	}
	reader := w.open(t, withHooks).signIn(max)
	checkPage(t, reader.get(one, 200))
	reader.post(one+"/disable", 403)
	b.post(one+"/disable", 303)
	page = b.get(one, 200)
	has(t, page, "Somebody disabled it")
	b.post(one+"/enable", 303)
	b.post(one+"/other", 404)
	b.post(one+"/delete", 303)
	b.get(one, 404)
	b.get("/portal/"+orgTwo+"/webhooks/"+id[1], 404)
}
