package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"hubcloud/domain"
)

// siteBody is the contract's Site.
type siteBody struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	HubCount  int    `json:"hub_count"`
	CreatedAt string `json:"created_at"`
}

// appendJSON writes the site as encoding/json does.
func (s siteBody) appendJSON(dst []byte) []byte {
	dst = appendText(append(dst, `{"id":`...), s.ID)
	dst = appendText(append(dst, `,"name":`...), s.Name)
	dst = strconv.AppendInt(append(dst, `,"hub_count":`...), int64(s.HubCount), 10)
	dst = appendText(append(dst, `,"created_at":`...), s.CreatedAt)
	return append(dst, '}')
}

func formOfSite(s domain.Site) siteBody {
	return siteBody{
		ID:        s.ID,
		Name:      s.Name,
		HubCount:  s.HubCount,
		CreatedAt: domain.FormatTime(s.CreatedAt),
	}
}

func (a *api) listSites(x *exchange) error {
	limit, after, err := x.readListing("sites")
	if err != nil {
		return err
	}
	page, err := a.ReadModels.Sites(x.ctx, x.key.OrgID, limit, after)
	if err != nil {
		return err
	}
	return writeList(x, page, formOfSite)
}

func (a *api) createSite(x *exchange) error {
	key, err := idempotencyKey(x.r.Header)
	if err != nil {
		return err
	}
	name, err := x.readSiteName()
	if err != nil {
		return err
	}
	return x.answerOnce(
		http.StatusCreated,
		key,
		name,
		func(ctx context.Context, id string) (any, error) {
			site, err := a.Directory.CreateSiteAs(ctx, x.origin(), x.key.OrgID, id, name)
			return formOfSite(
				domain.Site{ID: site.ID, Name: site.Name, CreatedAt: site.CreatedAt},
			), err
		},
	)
}

func (a *api) getSite(x *exchange) error {
	id, err := sitePath(x)
	if err != nil {
		return err
	}
	site, err := a.ReadModels.Site(x.ctx, x.key.OrgID, id)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, formOfSite(site))
}

func (a *api) updateSite(x *exchange) error {
	id, err := sitePath(x)
	if err != nil {
		return err
	}
	name, err := x.readSiteName()
	if err != nil {
		return err
	}
	state, err := a.Directory.RenameSite(x.ctx, x.origin(), x.key.OrgID, id, name)
	if err != nil {
		return err
	}
	// What it is about as it was decided, the rest as the read models have it: they have the change
	// too, unless they stand still or lag far behind.
	ctx, cancel := context.WithTimeout(x.ctx, changedReadTimeout)
	defer cancel()
	site, err := a.ReadModels.Site(ctx, x.key.OrgID, id)
	var refused *domain.Error
	if err != nil && (!errors.As(err, &refused) || refused.Code != domain.CodeNotFound) {
		return changedUnread("site", err)
	}
	site.ID, site.Name, site.CreatedAt = state.ID, state.Name, state.CreatedAt
	return x.writeJSON(http.StatusOK, formOfSite(site))
}

// readSiteName reads the body of both routes that take a site.
func (x *exchange) readSiteName() (string, error) {
	body, err := x.readObject("name")
	if err != nil {
		return "", err
	}
	name, err := body.text("name")
	if err != nil {
		return "", err
	}
	return domain.CleanName("name", name)
}

// sitePath gives the site id of the path. There is no site with an id of another form.
func sitePath(x *exchange) (string, error) {
	id := x.r.PathValue("site_id")
	if !domain.IsUUID(id) {
		return "", domain.ErrSiteNotFound()
	}
	return id, nil
}
