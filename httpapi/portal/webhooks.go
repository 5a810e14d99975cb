package portal

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"hubcloud/domain"
)

// Webhooks delivers events to webhooks, and keeps their secrets.
type Webhooks interface {
	// CheckURL returns an invalid_request for an address that nothing is posted to.
	CheckURL(url string) error
	// Seal returns a new secret of a webhook, sealed, and Reveal the newest one as it is shown.
	Seal(id string) []byte
	Reveal(w domain.Webhook) (string, error)
	// Progress returns how far the deliveries have come, and Forget removes that.
	Progress(ctx context.Context, w domain.Webhook) (domain.WebhookProgress, error)
	Forget(ctx context.Context, id string)
	// Test posts a test once. It returns rate_limited for one test too many.
	Test(ctx context.Context, w domain.Webhook) (domain.WebhookDelivery, error)
}

// webhooksView is the page of the organization's webhooks.
type webhooksView struct {
	Layout
	Webhooks []domain.Webhook
	// Secret is the secret of a webhook that this request has created.
	Secret string
	// Name, URL and Types are what was typed. Problem is what is wrong with it.
	Name, URL, Types, Problem string
}

// webhookView is the page of one webhook.
type webhookView struct {
	Layout
	Webhook  domain.Webhook
	Progress domain.WebhookProgress
	// Secret is a new secret that this request has made.
	Secret string
	// Tested is the result of a test that this request has made.
	Tested *domain.WebhookDelivery
}

// webhooks shows the organization's webhooks.
func (req *request) webhooks() error { return req.showWebhooks(http.StatusOK, webhooksView{}) }

func (req *request) showWebhooks(status int, view webhooksView) (err error) {
	if view.Webhooks, err = req.Directory.Webhooks(req.ctx, req.org); err != nil {
		return err
	}
	if view.Layout = req.layout("Webhooks", "developers"); view.Secret != "" {
		view.Scripts = []string{"copy.js"}
	}
	req.render(status, "webhooks.html", view)
	return nil
}

// createWebhook creates a webhook and shows its secret. It does not redirect: the secret would have
// to be stored in the clear for the next page.
func (req *request) createWebhook() error {
	view := webhooksView{
		Name: req.formValue("name"), URL: strings.TrimSpace(req.formValue("url")),
		Types: req.formValue("types"),
	}
	target := domain.WebhookTarget{
		URL: view.URL, Filter: domain.EventFilter{Types: strings.Fields(view.Types)},
	}
	var w domain.Webhook
	err := req.submitOnce(func() (err error) {
		if target.Name, err = domain.CleanLabel("name", view.Name); err != nil {
			return err
		}
		if err = req.Webhooks.CheckURL(target.URL); err != nil {
			return err
		}
		if err = target.Filter.CheckTypes("types"); err != nil {
			return err
		}
		w, err = req.Directory.CreateWebhook(
			req.ctx, req.origin(), req.org, "", target, req.Webhooks.Seal,
		)
		return err
	})
	if errors.Is(err, errAlreadySubmitted) {
		req.redirectInOrg("webhooks", "webhook-shown")
		return nil
	}
	if problem, ok := rejectionText(err); ok {
		view.Problem = problem
		return req.showWebhooks(rejectionStatus(err), view)
	}
	if err != nil {
		return err
	}
	secret, err := req.Webhooks.Reveal(w)
	if err != nil {
		return err
	}
	return req.showWebhooks(http.StatusCreated, webhooksView{Secret: secret})
}

// webhook returns the webhook of the path.
func (req *request) webhook() (domain.Webhook, error) {
	all, err := req.Directory.Webhooks(req.ctx, req.org)
	if err != nil {
		return domain.Webhook{}, err
	}
	return all.Get(req.http.PathValue("webhook"))
}

// webhookPage shows a webhook and its last requests.
func (req *request) webhookPage() error {
	w, err := req.webhook()
	if err != nil {
		return err
	}
	return req.showWebhook(webhookView{Webhook: w})
}

func (req *request) showWebhook(view webhookView) (err error) {
	if view.Progress, err = req.Webhooks.Progress(req.ctx, view.Webhook); err != nil {
		return err
	}
	if view.Layout = req.layout("Webhook", "developers"); view.Secret != "" {
		view.Scripts = []string{"copy.js"}
	}
	req.render(http.StatusOK, "webhook.html", view)
	return nil
}

// actOnWebhook runs an action of a webhook's page.
func (req *request) actOnWebhook() error {
	w, err := req.webhook()
	if err != nil {
		return err
	}
	page := "webhooks/" + w.ID
	switch req.http.PathValue("action") {
	case "test":
		tested, err := req.Webhooks.Test(req.ctx, w)
		if err != nil {
			return err
		}
		return req.showWebhook(webhookView{Webhook: w, Tested: &tested})
	case "rotate":
		w, err = req.Directory.RotateWebhook(
			req.ctx, req.origin(), req.org, w.ID, req.Webhooks.Seal(w.ID), domain.DefaultSecretOverlap,
		)
		if err != nil {
			return err
		}
		secret, err := req.Webhooks.Reveal(w)
		if err != nil {
			return err
		}
		return req.showWebhook(webhookView{Webhook: w, Secret: secret})
	case "enable", "disable":
		enable := req.http.PathValue("action") == "enable"
		_, err = req.Directory.ChangeWebhook(
			req.ctx, req.origin(), req.org, w.ID, domain.WebhookChange{Enabled: &enable},
		)
		return req.finish(err, page, "webhook-changed")
	case "delete":
		err = req.Directory.DeleteWebhook(req.ctx, req.origin(), req.org, w.ID)
		if err == nil {
			req.Webhooks.Forget(req.ctx, w.ID)
		}
		return req.finish(err, "webhooks", "webhook-deleted")
	}
	return errPageNotFound
}

// WebhookDirectory has the webhooks of organizations. Errors are domain.Errors.
type WebhookDirectory interface {
	// Webhooks returns the webhooks of an organization, the oldest first.
	Webhooks(ctx context.Context, org string) (domain.WebhooksState, error)
	// CreateWebhook creates a webhook, with a new id if id is empty; seal returns its sealed secret.
	// If the webhook exists already, it is returned unchanged.
	CreateWebhook(
		ctx context.Context, o domain.Origin, org, id string, target domain.WebhookTarget,
		seal func(id string) []byte,
	) (domain.Webhook, error)
	ChangeWebhook(
		ctx context.Context, o domain.Origin, org, id string, change domain.WebhookChange,
	) (domain.Webhook, error)
	// RotateWebhook adds a new sealed secret beside the former one.
	RotateWebhook(
		ctx context.Context, o domain.Origin, org, id string, sealed []byte, overlap time.Duration,
	) (domain.Webhook, error)
	DeleteWebhook(ctx context.Context, o domain.Origin, org, id string) error
}
