#pragma once

#include "lamplighter/bundle.h"
#include "lamplighter/describe.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "lamplighter/method.h"
#include "lamplighter/options.h"
#include "lamplighter/outputs.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/record.h"
#include "lamplighter/sinks.h"
#include "lamplighter/version.h"
