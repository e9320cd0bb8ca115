/* SPDX-License-Identifier: Apache-2.0 */
/* Any line as "FAMILY NAME". The module is a part of the name; flags agree. */
#include <stdlib.h>
#include <string.h>

#include "common/formats/naming.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char *text = malloc(n + 1), *name, *family = NULL;
    struct moe_naming out;
    bool yes;

    if (text == NULL)
        abort();
    if (n > 0)
        memcpy(text, p, n);
    text[n] = '\0';
    name = text;
    if ((name = strchr(text, ' ')) != NULL) {
        family = text;
        *name++ = '\0';
    } else {
        name = text;
    }
    yes = moe_naming_parse(family, 3, name, &out);
    if (yes != (out.role != MOE_ROLE_UNKNOWN) || strlen(out.module) > strlen(name) ||
        strncmp(name, out.module, strlen(out.module)) != 0 || out.layer < -1 || out.expert < -1 ||
        (out.stacked && (!yes || out.expert != -1)) || (out.interleaved && !out.stacked) ||
        moe_naming_role(out.role) == NULL || moe_naming_proj(out.proj) == NULL)
        abort();
    free(text);
    return 0;
}
