package httpapi

import (
	"context"
	"net/http"

	"hubcloud/domain"
)

// siteBody is the contract's Site.
type siteBody struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	HubCount  int    `json:"hub_count"`
	CreatedAt string `json:"created_at"`
}

func newSiteBody(s domain.Site) siteBody {
	return siteBody{
		ID:        s.ID,
		Name:      s.Name,
		HubCount:  s.HubCount,
		CreatedAt: domain.FormatTime(s.CreatedAt),
	}
}

func (a *api) listSites(req *request) error {
	limit, after, err := req.readListQuery("sites")
	if err != nil {
		return err
	}
	page, err := a.ReadModels.Sites(req.ctx, req.key.Reach, limit, after)
	return req.answer(http.StatusOK, listOf(page, newSiteBody), err)
}

func (a *api) createSite(req *request) error {
	key, err := req.idempotencyKey()
	if err != nil {
		return err
	}
	name, err := req.readSiteName()
	if err != nil {
		return err
	}
	if err := req.key.Reach.WholeOrganization("create one"); err != nil {
		return err
	}
	return req.answerOnce(
		http.StatusCreated,
		key,
		name,
		func(ctx context.Context, id string) (any, error) {
			site, err := a.Directory.CreateSiteWithID(ctx, req.origin(), req.key.Reach.OrgID, id, name)
			return newSiteBody(site.View()), err
		},
	)
}

func (a *api) getSite(req *request, id string) error {
	site, err := a.ReadModels.Site(req.ctx, req.key.Reach.OrgID, id)
	return req.answer(http.StatusOK, newSiteBody(site), err)
}

func (a *api) updateSite(req *request, id string) error {
	name, err := req.readSiteName()
	if err != nil {
		return err
	}
	state, err := a.Directory.RenameSite(req.ctx, req.origin(), req.key.Reach.OrgID, id, name)
	if err != nil {
		return err
	}
	changed, err := a.changedSite(req.ctx, req.key.Reach.OrgID, state)
	return req.answer(http.StatusOK, changed, err)
}

// readSiteName reads the body of POST and PATCH, which has only a name. The directory cleans the
// name too; here it is cleaned so that requests with the same Idempotency-Key whose names differ
// only in white space are equal.
func (req *request) readSiteName() (string, error) {
	body := req.readFields("name")
	return read(body, "name", body.name), body.err
}
