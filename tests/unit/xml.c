/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of XML: what they hold, what is refused, and where it is said to be. */
#include <string.h>

#include "common/base/xml.h"
#include "tests/tap.h"

static void
tree(void)
{
    static const char text[] = "<?xml version=\"1.0\"?>\n<a x='1' y='&lt;2'>\n <b/>"
        "<c>in &amp; out</c><!-- no --><b z='3'><d/></b></a>";
    struct moe_err e = { 0, "" };
    struct moe_xml_doc d;
    const struct moe_xml *c;

    if (!tap_is_int(moe_xml_parse(text, strlen(text), "f", &d, &e), 0, "a tree %s", e.text))
        return;
    tap_is_str(d.root->name, "a", "root");
    tap_is_str(moe_xml_attr(d.root, "y"), "<2", "attribute");
    tap_ok(moe_xml_attr(d.root, "z") == NULL, "no such attribute");
    tap_is_str(d.root->child->name, "b", "first child");
    c = d.root->child->next;
    tap_is_str(c->text, "in & out", "text");
    tap_is_int((long long)c->line, 3, "line");
    tap_is_str(moe_xml_attr(c->next, "z"), "3", "last child");
    tap_ok(c->next->child->parent == c->next && c->next->next == NULL, "parent, end");
    moe_xml_fini(&d);
}

static void
refused(const char *text, int code, const char *want)
{
    struct moe_err e = { 0, "" };
    struct moe_xml_doc d;

    tap_is_int(moe_xml_parse(text, strlen(text), "f", &d, &e), code, "refused: %s", want);
    tap_is_str(e.text, want, "with the place");
}

int
main(void)
{
    char deep[4 * MOE_XML_MAX_DEPTH + 5] = "";

    tree();
    refused("", MOE_EFORMAT, "f:1: no element found");
    refused("<a>\n<b></a>", MOE_EFORMAT, "f:2: mismatched tag");
    refused("<a/><a/>", MOE_EFORMAT, "f:1: junk after document element");
    refused("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", MOE_EFORMAT, "f:1: declares an entity");
    refused("<!DOCTYPE a [<!ENTITY % x SYSTEM 'file:///etc/passwd'>%x;]><a/>", MOE_EFORMAT,
        "f:1: declares an entity");
    for (size_t i = 0; i <= MOE_XML_MAX_DEPTH; i++)
        memcpy(deep + 3 * i, "<a>", 4);
    refused(deep, MOE_ELIMIT, "f:1: nested too deeply");
    return tap_done();
}
